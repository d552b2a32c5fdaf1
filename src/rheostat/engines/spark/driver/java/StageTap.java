package rheostat;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.*;
import org.apache.spark.sql.execution.AggregatingAccumulator;
import org.apache.spark.sql.execution.SparkPlanInfo;
import org.apache.spark.sql.execution.metric.SQLMetricInfo;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;
import org.apache.spark.sql.streaming.StreamingQueryListener;
import org.apache.spark.util.AccumulatorContext;

/**
 * Records what Spark reports to its listeners, one JSON text per event, until it is drained.
 *
 * Streaming events pass through the same bus, so one listener gets stages, executors and queries of every
 * session, in order. If events are not drained, the oldest are dropped: a lost controller costs no memory.
 */
public class StageTap extends SparkListener {
  private static final int MAX_LINES = 20000;
  private final ConcurrentLinkedDeque lines = new ConcurrentLinkedDeque();
  private final AtomicInteger size = new AtomicInteger();
  private final ConcurrentHashMap open = new ConcurrentHashMap();  // stage id -> Running
  private final ConcurrentHashMap executors = new ConcurrentHashMap();  // id -> JSON, of registered executors
  private final ConcurrentHashMap plans = new ConcurrentHashMap();  // SQL execution id -> Plan, of batches that run
  private final ConcurrentHashMap batches = new ConcurrentHashMap();  // query -> Batch, of batches that run

  public static class Running {
    String query = "";
    String batch = "";
    Object plan = null;  // of the SQL execution that runs it, unless that is foreachBatch()'s own code
    final StringBuilder tasks = new StringBuilder();
  }

  /**
   * The stages of a batch's plan, numbered as `stages.py` numbers them, found by the metrics of their nodes.
   *
   * A batch may run a stage several times, or run others: foreachBatch() calls the user's own code. The ids of
   * stages do not tell which is which, and the two inputs of a join come in any order.
   */
  public static class Plan {
    private static final Integer NONE = Integer.valueOf(-1);
    final Map stageOf = new HashMap();  // a metric's id -> number of its node's stage, or NONE: of a broadcast
    final List parents = new ArrayList();  // per stage: the numbers of those below it
    final Map known = new HashMap();  // Spark's stage id -> number

    Plan(SparkPlanInfo root) { number(root); }

    private Integer number(SparkPlanInfo top) {
      List metrics = new ArrayList();
      List below = new ArrayList();
      walk(top, metrics, below);
      List numbers = new ArrayList();
      for (int i = 0; i < below.size(); i++) numbers.add(number((SparkPlanInfo) below.get(i)));
      Integer mine = Integer.valueOf(parents.size());
      parents.add(numbers);
      for (int i = 0; i < metrics.size(); i++) stageOf.put(metrics.get(i), mine);
      return mine;
    }

    private void walk(SparkPlanInfo node, List metrics, List below) {
      if (node.nodeName().equals("BroadcastExchange") || node.nodeName().contains("Subquery")) {
        exclude(node);
        return;
      }
      scala.collection.Iterator children = node.children().iterator();
      if (node.nodeName().equals("Exchange")) {  // its metrics are of the stages on both sides
        if (children.hasNext()) below.add(children.next());
        return;
      }
      scala.collection.Iterator all = node.metrics().iterator();
      while (all.hasNext()) metrics.add(Long.valueOf(((SQLMetricInfo) all.next()).accumulatorId()));
      while (children.hasNext()) walk((SparkPlanInfo) children.next(), metrics, below);
    }

    /** What is broadcast runs in stages of its own, which are not among those of the plan. */
    private void exclude(SparkPlanInfo node) {
      scala.collection.Iterator all = node.metrics().iterator();
      while (all.hasNext()) stageOf.put(Long.valueOf(((SQLMetricInfo) all.next()).accumulatorId()), NONE);
      scala.collection.Iterator children = node.children().iterator();
      while (children.hasNext()) exclude((SparkPlanInfo) children.next());
    }

    /** Whether a plan is about the same nodes. */
    boolean shares(Plan other) {
      java.util.Iterator all = other.stageOf.keySet().iterator();
      while (all.hasNext()) if (stageOf.containsKey(all.next())) return true;
      return false;
    }

    /** The number of a stage that ended, by what its nodes counted; null: none of them is in the plan. */
    Integer counted(StageInfo stage) {
      scala.collection.Iterator counted = stage.accumulables().keysIterator();
      while (counted.hasNext()) {
        Integer number = (Integer) stageOf.get(counted.next());
        if (number != null) return remember(stage, number);
      }
      return null;
    }

    /** The same by the stages below it, as metrics that are 0 are not reported; `mine`: this plan runs it. */
    Integer above(StageInfo stage, boolean mine) {
      List numbers = new ArrayList();
      scala.collection.Iterator ids = stage.parentIds().iterator();
      while (ids.hasNext()) numbers.add(known.get(ids.next()));
      if (numbers.contains(null) || (numbers.isEmpty() && !mine)) return null;
      int found = parents.indexOf(numbers);
      return found >= 0 && parents.lastIndexOf(numbers) == found ? remember(stage, Integer.valueOf(found)) : null;
    }

    private Integer remember(StageInfo stage, Integer number) {
      known.put(Integer.valueOf(stage.stageId()), number);
      return number;
    }

    String describe(Integer number) {
      return number.equals(NONE) ? "" : ",\"place\":" + number + ",\"places\":" + parents.size();
    }
  }

  /** A batch that runs: when its first stage began, and its tasks so far. */
  public static class Batch {
    final String number;
    final long since;
    int tasks;
    int done;
    int stages;

    Batch(String number, long since) {
      this.number = number;
      this.since = since;
    }
  }

  public String drain() {
    StringBuilder out = new StringBuilder("[");
    Object line;
    while ((line = lines.poll()) != null) {
      size.decrementAndGet();
      if (out.length() > 1) out.append(',');
      out.append((String) line);
    }
    return out.append(']').toString();
  }

  private void add(String line) {
    lines.add(line);
    if (size.incrementAndGet() > MAX_LINES && lines.poll() != null) size.decrementAndGet();
  }

  public void onStageSubmitted(SparkListenerStageSubmitted event) {
    java.util.Properties properties = event.properties();
    if (properties == null || properties.getProperty("sql.streaming.queryId") == null) return;
    Running stage = new Running();
    stage.query = properties.getProperty("sql.streaming.queryId");
    stage.batch = properties.getProperty("streaming.sql.batchId", "-1");
    String execution = properties.getProperty("spark.sql.execution.id");
    stage.plan = execution == null ? null : plans.get(Long.valueOf(execution));
    open.put(Integer.valueOf(event.stageInfo().stageId()), stage);
    Batch batch = (Batch) batches.get(stage.query);
    if (batch == null || !batch.number.equals(stage.batch)) batch = new Batch(stage.batch, System.currentTimeMillis());
    batch.tasks += event.stageInfo().numTasks();
    batch.stages++;
    batches.put(stage.query, batch);
  }

  /** The batches that run, as JSON: per query its number, since when (unix ms), tasks so far and how many of them ended. */
  public String running() {
    StringBuilder out = new StringBuilder("{");
    java.util.Iterator all = batches.entrySet().iterator();
    while (all.hasNext()) {
      Map.Entry entry = (Map.Entry) all.next();
      Batch batch = (Batch) entry.getValue();
      out.append(out.length() > 1 ? "," : "").append(text((String) entry.getKey())).append(":{\"batch\":").append(batch.number)
          .append(",\"since\":").append(batch.since).append(",\"stages\":").append(batch.stages)
          .append(",\"tasks\":").append(batch.tasks).append(",\"done\":").append(batch.done).append("}");
    }
    return out.append('}').toString();
  }

  public void onTaskEnd(SparkListenerTaskEnd event) {
    Running stage = (Running) open.get(Integer.valueOf(event.stageId()));
    TaskMetrics used = event.taskMetrics();
    if (stage == null || used == null || !event.taskInfo().successful()) return;
    Batch batch = (Batch) batches.get(stage.query);
    if (batch != null && batch.number.equals(stage.batch)) batch.done++;
    long rows = used.shuffleReadMetrics().recordsRead() + used.inputMetrics().recordsRead();
    long cpu = used.executorCpuTime() + 1000000L * python(event.taskInfo().accumulables().iterator(), true);
    synchronized (stage.tasks) {
      if (stage.tasks.length() > 0) stage.tasks.append(',');
      stage.tasks.append("[").append(text(event.taskInfo().executorId())).append(',').append(cpu).append(',').append(rows)
          .append(',').append(Math.max(0L, event.taskInfo().finishTime() - event.taskInfo().launchTime()))
          .append(',').append(event.taskInfo().partitionId()).append(',').append(counted(used)).append(']');
    }
  }

  /**
   * The rows that left a task, by the lowest observe() of ours in its stage; null: it has none.
   *
   * A streaming shuffle counts no records. The value that Spark gives to listeners is an empty row, as it lacks the
   * query's settings there; the buffer behind it has the count. Of a stage's nodes Spark registers the upper first.
   */
  private static Long counted(TaskMetrics used) {
    AggregatingAccumulator lowest = null;
    scala.collection.Iterator all = used._externalAccums().iterator();
    while (all.hasNext()) {
      Object each = all.next();
      if (!(each instanceof AggregatingAccumulator)) continue;
      AggregatingAccumulator update = (AggregatingAccumulator) each;
      if (lowest != null && lowest.id() > update.id()) continue;
      scala.Option whole = AccumulatorContext.get(update.id());
      if (!whole.isDefined()) continue;
      String[] names = ((AggregatingAccumulator) whole.get()).schema().fieldNames();
      if (names.length > 0 && names[0].equals("rows")) lowest = update;
    }
    if (lowest == null) return null;
    return Long.valueOf(lowest.buffer() == null ? 0L : lowest.buffer().getLong(0));
  }

  public void onStageCompleted(SparkListenerStageCompleted event) {
    StageInfo stage = event.stageInfo();
    Running running = (Running) open.remove(Integer.valueOf(stage.stageId()));
    if (running == null) return;
    TaskMetrics used = stage.taskMetrics();
    StringBuilder line = new StringBuilder("{\"event\":\"stage\",\"id\":").append(stage.stageId());
    line.append(",\"parents\":[").append(stage.parentIds().mkString(",")).append("]");
    line.append(",\"query\":").append(text(running.query)).append(",\"batch\":").append(running.batch);
    line.append(place(stage, running.plan));
    line.append(",\"tasks\":").append(stage.numTasks()).append(",\"failed\":").append(stage.failureReason().isDefined());
    line.append(",\"submitted\":").append(time(stage.submissionTime())).append(",\"completed\":").append(time(stage.completionTime()));
    line.append(",\"cpu_ns\":").append(used.executorCpuTime()).append(",\"run_ms\":").append(used.executorRunTime());
    line.append(",\"wait_ms\":").append(used.shuffleReadMetrics().fetchWaitTime());
    line.append(",\"gc_ms\":").append(used.jvmGCTime()).append(",\"python_ms\":").append(python(stage.accumulables().values().iterator(), false));
    line.append(",\"each\":[");
    synchronized (running.tasks) { line.append(running.tasks); }
    add(line.append("]}").toString());
  }

  /** Which stage of the batch's plan it was, and how many that plan has. */
  private String place(StageInfo stage, Object own) {
    java.util.Iterator all = plans.values().iterator();
    while (all.hasNext()) {
      Plan plan = (Plan) all.next();
      Integer number = plan.counted(stage);
      if (number != null) return plan.describe(number);
    }
    all = plans.values().iterator();
    while (all.hasNext()) {
      Plan plan = (Plan) all.next();
      Integer number = plan.above(stage, plan == own);
      if (number != null) return plan.describe(number);
    }
    return "";
  }

  /** Python workers are other processes: their time is not in the task's CPU time but in a separate metric. */
  private static long python(scala.collection.Iterator all, boolean task) {
    long sum = 0;
    while (all.hasNext()) {
      AccumulableInfo metric = (AccumulableInfo) all.next();
      if (!metric.name().isDefined() || !"time to execute Python code".equals(metric.name().get())) continue;
      scala.Option milliseconds = task ? metric.update() : metric.value();
      if (milliseconds.isDefined()) sum += Math.max(0L, ((Number) milliseconds.get()).longValue());
    }
    return sum;
  }

  /** The registered executors; `page` is the address at which the Worker shows the log, so it identifies the Worker. */
  public String executors() {
    StringBuilder out = new StringBuilder("[");
    java.util.Iterator all = executors.values().iterator();
    while (all.hasNext()) out.append(out.length() > 1 ? "," : "").append((String) all.next());
    return out.append(']').toString();
  }

  /** Add an executor that registered before this listener did. */
  public void seed(String id, String host, int slots, String page) {
    executors.putIfAbsent(id, "{" + executor(id, host, slots, page) + "}");
  }

  private static String executor(String id, String host, int slots, String page) {
    return "\"id\":" + text(id) + ",\"host\":" + text(host) + ",\"slots\":" + slots + ",\"page\":" + text(page);
  }

  public void onExecutorAdded(SparkListenerExecutorAdded event) {
    scala.Option page = event.executorInfo().logUrlMap().get("stdout");
    String fields = executor(event.executorId(), event.executorInfo().executorHost(), event.executorInfo().totalCores(),
        page.isDefined() ? (String) page.get() : null);
    executors.put(event.executorId(), "{" + fields + "}");
    add("{\"event\":\"executor added\"," + fields + ",\"at\":" + event.time() + "}");
  }

  public void onExecutorRemoved(SparkListenerExecutorRemoved event) {
    executors.remove(event.executorId());
    add("{\"event\":\"executor removed\",\"id\":" + text(event.executorId()) + ",\"at\":" + event.time()
        + ",\"reason\":" + text(event.reason()) + "}");
  }

  public void onOtherEvent(SparkListenerEvent event) {
    if (event instanceof SparkListenerSQLExecutionStart) {
      SparkListenerSQLExecutionStart began = (SparkListenerSQLExecutionStart) event;
      Plan plan = new Plan(began.sparkPlanInfo());
      Long id = Long.valueOf(began.executionId());
      Object root = began.rootExecutionId().isDefined() ? began.rootExecutionId().get() : id;
      Object batch = plans.get(root);
      if (root.equals(id)) plans.put(id, plan);
      else if (batch != null && ((Plan) batch).shares(plan)) plans.put(id, batch);  // the sink runs the batch's plan
    } else if (event instanceof SparkListenerSQLExecutionEnd) {
      plans.remove(Long.valueOf(((SparkListenerSQLExecutionEnd) event).executionId()));
    } else if (event instanceof StreamingQueryListener.QueryProgressEvent) {
      batches.remove(((StreamingQueryListener.QueryProgressEvent) event).progress().id().toString());
      add("{\"event\":\"progress\",\"progress\":" + ((StreamingQueryListener.QueryProgressEvent) event).progress().json() + "}");
    } else if (event instanceof StreamingQueryListener.QueryIdleEvent) {
      StreamingQueryListener.QueryIdleEvent idle = (StreamingQueryListener.QueryIdleEvent) event;
      add("{\"event\":\"idle\",\"query\":" + text(idle.id().toString()) + ",\"timestamp\":" + text(idle.timestamp()) + "}");
    } else if (event instanceof StreamingQueryListener.QueryStartedEvent) {
      StreamingQueryListener.QueryStartedEvent started = (StreamingQueryListener.QueryStartedEvent) event;
      add("{\"event\":\"query started\",\"query\":" + text(started.id().toString()) + ",\"run\":" + text(started.runId().toString())
          + ",\"name\":" + text(started.name()) + ",\"at\":" + System.currentTimeMillis() + "}");
    } else if (event instanceof StreamingQueryListener.QueryTerminatedEvent) {
      StreamingQueryListener.QueryTerminatedEvent ended = (StreamingQueryListener.QueryTerminatedEvent) event;
      batches.remove(ended.id().toString());
      add("{\"event\":\"query ended\",\"query\":" + text(ended.id().toString()) + ",\"run\":" + text(ended.runId().toString())
          + ",\"reason\":" + text(ended.exception().isDefined() ? (String) ended.exception().get() : null)
          + ",\"at\":" + System.currentTimeMillis() + "}");
    }
  }

  private static String time(scala.Option when) {
    return when.isDefined() ? when.get().toString() : "null";
  }

  private static String text(String value) {
    if (value == null) return "null";
    StringBuilder out = new StringBuilder("\"");
    int length = Math.min(value.length(), 2000);
    for (int i = 0; i < length; i++) {
      char c = value.charAt(i);
      if (c == '"' || c == '\\') out.append('\\').append(c);
      else if (c < ' ') out.append(String.format("\\u%04x", new Object[] {Integer.valueOf(c)}));
      else out.append(c);
    }
    return out.append('"').toString();
  }
}
