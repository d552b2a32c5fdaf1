package rheostat;

import java.lang.reflect.Field;
import java.util.TreeSet;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;
import org.apache.spark.sql.execution.streaming.sinks.FileStreamSink;
import org.apache.spark.sql.execution.streaming.sinks.FileStreamSinkLog;
import org.apache.spark.sql.execution.streaming.sinks.SinkFileStatus;
import org.apache.spark.sql.execution.streaming.state.OfflineStateRepartitionUtils;
import org.apache.spark.sql.streaming.StreamingQueryListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Completes the log of a sink that writes files, before the query's first batch.
 *
 * Such a sink lists the files of every batch in its own log, and merges these lists every tenth batch. A rewrite of
 * state takes a batch number but writes no files, so its list is missing, and Spark 4.3 fails with
 * BATCH_METADATA_NOT_FOUND at the next merge and at every start after it. We add an empty list. Spark calls a listener
 * in the query's own thread when the query starts, so the list is there in time, whoever was killed after the rewrite.
 * Compiled by Janino: no generics, no lambdas.
 */
public class FileSinkLogs extends StreamingQueryListener {
  private static final Logger LOG = LoggerFactory.getLogger("rheostat.FileSinkLogs");
  private static final String MERGED = ".compact";

  public void onQueryStarted(StreamingQueryListener.QueryStartedEvent event) {
    try {
      Object session = SparkSession.getDefaultSession().get();
      Object query = ((org.apache.spark.sql.classic.SparkSession) session)
          .sharedState().activeStreamingQueries().get(event.id());
      if (query instanceof StreamExecution && ((StreamExecution) query).sink() instanceof FileStreamSink) {
        complete((StreamExecution) query, logOf((FileStreamSink) ((StreamExecution) query).sink()));
      }
    } catch (Throwable error) {
      LOG.warn("the log of a file sink was not completed: " + error);
    }
  }

  public void onQueryProgress(StreamingQueryListener.QueryProgressEvent event) { }

  public void onQueryTerminated(StreamingQueryListener.QueryTerminatedEvent event) { }

  /** The sink's own log, which knows the session's settings and how the batches so far were merged. */
  private static FileStreamSinkLog logOf(FileStreamSink sink) throws Exception {
    Field log = FileStreamSink.class.getDeclaredField("fileLog");
    log.setAccessible(true);
    return (FileStreamSinkLog) log.get(sink);
  }

  private static void complete(StreamExecution query, FileStreamSinkLog log) {
    TreeSet listed = new TreeSet();
    long merged = -1L;
    FileStatus[] files = log.getOrderedBatchFiles();
    for (int i = 0; i < files.length; i++) {
      String name = files[i].getPath().getName();
      long batch = Long.parseLong(name.endsWith(MERGED) ? name.substring(0, name.length() - MERGED.length()) : name);
      listed.add(new Long(batch));
      if (name.endsWith(MERGED)) merged = Math.max(merged, batch);
    }
    scala.Option committed = query.commitLog().getLatestBatchId();
    if (listed.isEmpty() || committed.isEmpty()) return;
    long last = ((Number) committed.get()).longValue();
    for (long batch = Math.max(merged, ((Long) listed.first()).longValue()) + 1; batch <= last; batch++) {
      if (!listed.contains(new Long(batch)) && OfflineStateRepartitionUtils.isRepartitionBatch(batch, query.offsetLog())) {
        log.add(batch, new SinkFileStatus[0]);
        LOG.info("batch " + batch + " rewrote state and wrote no files: added to the log of the sink");
      }
    }
  }
}
