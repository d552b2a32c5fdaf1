package rheostat;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.spark.JobArtifactSet;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.rdd.RDD;
import org.apache.spark.scheduler.ResultTask;
import org.apache.spark.scheduler.ShuffleMapTask;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.Task;
import org.apache.spark.serializer.SerializerInstance;
import org.apache.spark.shuffle.ShuffleManager;
import org.apache.spark.shuffle.ShuffleManager$;
import org.apache.spark.sql.SparkSession$;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec;
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec;
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2Exec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperator;
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo;
import org.apache.spark.sql.execution.streaming.runtime.IncrementalExecution;
import org.apache.spark.sql.execution.streaming.state.StateStore$;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * A new executor rehearses the last batch before it takes tasks, so that its JVM has loaded, compiled and run the
 * query's code when its first batch begins. See docs/decisions/0007-warm-executors.md.
 *
 * A rehearsal has no outside effect: map outputs are not reported, a result stage runs without its sink, and state
 * goes to an empty scratch folder. Compiled by Janino: no generics, no lambdas.
 */
public class Rehearsal implements SparkPlugin {
  static final Logger LOG = LoggerFactory.getLogger("rheostat.Rehearsal");
  static final int LANES = 2;
  static final String BROKEN = "broken";
  static final String SECONDS = "spark.rheostat.rehearsal.seconds";
  static final String LIMIT_SECONDS = "spark.rheostat.rehearsal.limitSeconds";
  private static final Map READY = new ConcurrentHashMap();
  private static final ConcurrentLinkedQueue NOTES = new ConcurrentLinkedQueue();

  /** The ids of the executors that finished their rehearsal. */
  public static String ready() { return String.join(",", READY.keySet()); }

  /** The next message about an executor that ended because its rehearsal failed; null: no more. */
  public static String note() { return (String) NOTES.poll(); }

  public DriverPlugin driverPlugin() { return new Prompter(); }

  public ExecutorPlugin executorPlugin() { return new Player(); }

  static SerializerInstance serializer() { return SparkEnv.get().closureSerializer().newInstance(); }

  static ClassTag any() { return ClassTag$.MODULE$.apply(Object.class); }

  static byte[] bytes(Object value) {
    ByteBuffer buffer = serializer().serialize(value, any());
    byte[] out = new byte[buffer.remaining()];
    buffer.get(out);
    return out;
  }

  /** In the driver: remembers each query's last batch and hands its tasks to executors that ask. */
  public static class Prompter extends SparkListener implements DriverPlugin {
    private SparkContext context;
    private volatile boolean broken;
    private final Map batches = Collections.synchronizedMap(new Few());
    private final Map lent = Collections.synchronizedMap(new Few()); // otherwise Spark cleans up what a rehearsal reads

    public Map init(SparkContext sc, PluginContext plugin) {
      READY.clear();
      context = sc;
      sc.addSparkListener(this);
      return Collections.emptyMap();
    }

    public void onOtherEvent(SparkListenerEvent event) {
      if (!(event instanceof SparkListenerSQLExecutionEnd)) return;
      QueryExecution done = ((SparkListenerSQLExecutionEnd) event).qe();
      if (done instanceof IncrementalExecution) batches.put(((IncrementalExecution) done).runId(), done);
    }

    /** Answers "ID" (it has finished) and "ID broken WHY" with nothing, "ID FOLDER" with tasks. */
    public Object receive(Object message) {
      String[] words = ((String) message).split(" ", 2);
      if (words.length == 1 || words[1].startsWith(BROKEN)) {
        lent.remove(words[0]);
        if (words.length == 1) READY.put(words[0], words[0]);
        else {
          broken = true;
          NOTES.add("executor " + words[0] + " gave up its rehearsal and ended; the next ones start cold:"
              + words[1].substring(BROKEN.length()));
        }
        return "";
      }
      ArrayList script = new ArrayList();
      ArrayList kept = new ArrayList();
      ArrayList last;
      synchronized (batches) { last = new ArrayList(batches.values()); }
      for (int i = 0; i < last.size() && !broken; i++) {
        try {
          Recording recording = new Recording(context, (QueryExecution) last.get(i), words[1]);
          kept.add(recording);
          script.addAll(recording.tasks());
        } catch (Throwable error) {
          LOG.warn("a query cannot be rehearsed: " + error);
        }
      }
      lent.put(words[0], kept);
      return bytes(script);
    }
  }

  /** A map that keeps only its newest entries. */
  public static class Few extends LinkedHashMap {
    protected boolean removeEldestEntry(Map.Entry eldest) { return size() > 8; }
  }

  /** The last batch of a query as tasks, a few per stage, in the order in which the stages run. */
  public static class Recording {
    private final SparkContext context;
    private final QueryExecution batch;
    private final String scratch;
    private final Properties properties = new Properties();
    private final List tasks = new ArrayList();
    private final List copies = new ArrayList(); // otherwise Spark cleans up what they broadcast
    private RDD rdd;

    public Recording(SparkContext context, QueryExecution batch, String scratch) {
      this.context = context;
      this.batch = batch;
      this.scratch = scratch;
    }

    public List tasks() {
      SparkPlan plan = batch.executedPlan();
      if (plan instanceof WriteToDataSourceV2Exec) plan = ((WriteToDataSourceV2Exec) plan).query();
      if (plan instanceof V2CommandExec || finds(plan, RealTimeStreamScanExec.class, false)) return tasks;
      Iterator settings = batch.sparkSession().sessionState().conf().getAllConfs().iterator();
      while (settings.hasNext()) { // as SQLExecution does for every task
        Tuple2 pair = (Tuple2) settings.next();
        if (((String) pair._1()).startsWith("spark")) properties.setProperty((String) pair._1(), (String) pair._2());
      }
      properties.setProperty("sql.streaming.queryId", UUID.randomUUID().toString());
      properties.setProperty("streaming.sql.batchId", "0");
      SparkSession$.MODULE$.setActiveSession(batch.sparkSession()); // whose settings shape the generated code
      try {
        shuffles(plan);
        result(plan);
      } finally {
        SparkSession$.MODULE$.clearActiveSession();
      }
      return tasks;
    }

    /** Whether the plan, or only its last stage, has a node of this class. */
    static boolean finds(SparkPlan plan, Class kind, boolean lastStage) {
      if (kind.isInstance(plan)) return true;
      if (lastStage && plan instanceof ShuffleExchangeExec) return false;
      Iterator children = plan.children().iterator();
      while (children.hasNext()) if (finds((SparkPlan) children.next(), kind, lastStage)) return true;
      return false;
    }

    private void shuffles(SparkPlan plan) {
      Iterator children = plan.children().iterator();
      while (children.hasNext()) shuffles((SparkPlan) children.next());
      if (!(plan instanceof ShuffleExchangeExec)) return;
      ShuffleDependency made = ((ShuffleExchangeExec) plan).shuffleDependency();
      MapOutputTrackerMaster tracker = (MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker();
      if (!tracker.containsShuffle(made.shuffleId())) return; // it never ran
      if (finds(((ShuffleExchangeExec) plan).child(), StatefulOperator.class, true)) {
        made = ((ShuffleExchangeExec) plan.mapChildren(new Elsewhere(scratch))).shuffleDependency();
        settle(made.rdd());
        copies.add(made);
      }
      Broadcast binary = context.broadcast(bytes(new Tuple2(made.rdd(), made)), any());
      for (int i = 0; i < LANES; i++) {
        int n = made.rdd().partitions().length;
        add(new ShuffleMapTask(0, 0, binary, made.rdd().partitions()[i % n], n, null,
            JobArtifactSet.defaultJobArtifactSet(), properties, bytes(TaskMetrics.registered()),
            Option.empty(), Option.empty(), Option.empty(), false), made.shuffleId());
      }
    }

    private void result(SparkPlan plan) {
      rdd = ((SparkPlan) new Elsewhere(scratch).apply(plan)).execute();
      settle(rdd);
      Broadcast binary = context.broadcast(bytes(new Tuple2(rdd, new Drain())), any());
      for (int i = 0; i < LANES; i++) {
        int n = rdd.partitions().length;
        add(new ResultTask(0, 0, binary, rdd.partitions()[i % n], n, null, i,
            JobArtifactSet.defaultJobArtifactSet(), properties, bytes(TaskMetrics.registered()),
            Option.empty(), Option.empty(), Option.empty(), false), -1);
      }
    }

    /** Computes the parents of an RDD, as the scheduler does; otherwise they are lost on the way to an executor. */
    private static void settle(RDD rdd) {
      rdd.partitions();
      Iterator parents = rdd.dependencies().iterator();
      while (parents.hasNext()) settle(((org.apache.spark.Dependency) parents.next()).rdd());
    }

    private void add(Task task, int shuffle) { tasks.add(new Object[] {task, properties, shuffle}); }
  }

  /** Gives the stateful operators of a plan's last stage an empty state in another folder; shuffles stay as they are. */
  public static class Elsewhere extends scala.runtime.AbstractFunction1 {
    private final String folder;
    private final UUID run = UUID.randomUUID();

    public Elsewhere(String folder) { this.folder = folder; }

    public Object apply(Object plan) {
      if (plan instanceof ShuffleExchangeExec) return plan; // a copy would be a new shuffle without data
      SparkPlan operator = (SparkPlan) ((SparkPlan) plan).mapChildren(this);
      if (!(operator instanceof StatefulOperator)) return operator;
      Object[] fields = new Object[operator.productArity()];
      for (int i = 0; i < fields.length; i++) {
        fields[i] = operator.productElement(i);
        if (!(fields[i] instanceof scala.Some)) continue;
        Object inner = ((scala.Some) fields[i]).value();
        if (!(inner instanceof StatefulOperatorStateInfo)) continue;
        StatefulOperatorStateInfo real = (StatefulOperatorStateInfo) inner;
        fields[i] = new scala.Some(new StatefulOperatorStateInfo(
            folder, run, real.operatorId(), 0L, real.numPartitions(), real.stateSchemaMetadata(), Option.empty()));
      }
      return operator.makeCopy(fields);
    }
  }

  /** Replaces the sink of a result stage: counts the rows. */
  public static class Drain extends scala.runtime.AbstractFunction2 implements java.io.Serializable {
    public Object apply(Object context, Object rows) {
      long count = 0;
      while (((Iterator) rows).hasNext()) {
        ((Iterator) rows).next();
        count++;
      }
      return count;
    }
  }

  /** In an executor: runs the tasks that the driver recorded, before the executor offers its slots. */
  public static class Player implements ExecutorPlugin {
    public void init(PluginContext plugin, Map settings) {
      long began = System.currentTimeMillis();
      try {
        long millis = (long) (1000 * Double.parseDouble(plugin.conf().get(SECONDS, "4")));
        long limit = (long) (1000 * Double.parseDouble(plugin.conf().get(LIMIT_SECONDS, "15")));
        String scratch = SparkEnv.get().blockManager().diskBlockManager().localDirs()[0].toURI() + "rehearsal";
        byte[] script = (byte[]) plugin.ask(plugin.executorID() + " " + scratch);
        String trouble = rehearse(script, millis, limit);
        if (!trouble.isEmpty()) giveUp(plugin, trouble);
      } catch (LinkageError error) {
        giveUp(plugin, " " + error);
      } catch (Throwable error) {
        LOG.warn("no rehearsal: " + error);
      }
      LOG.info("rehearsal took " + (System.currentTimeMillis() - began) + " ms");
      try {
        plugin.send(plugin.executorID());
      } catch (Throwable error) {
        LOG.warn("the driver does not know that the rehearsal is over: " + error);
      }
    }

    /** Ends this executor: a class that failed to load stays broken in its JVM, so a cold one in a new JVM is better. */
    private void giveUp(PluginContext plugin, String trouble) {
      LOG.error("the rehearsal went wrong: this executor ends, the next ones do without: " + trouble);
      try {
        plugin.ask(plugin.executorID() + " " + BROKEN + trouble);
      } catch (Throwable error) {
        LOG.warn("the driver does not know that the rehearsal went wrong: " + error);
      }
      Runtime.getRuntime().halt(1);
    }

    /** Returns what went wrong, or nothing. */
    private String rehearse(byte[] script, long millis, long limit) throws Exception {
      List parts = parts(script);
      if (parts.isEmpty()) return "";
      SparkEnv env = SparkEnv.get();
      // Spark creates its shuffle manager after the plugins, and requires that there is none yet.
      java.lang.reflect.Field manager = SparkEnv.class.getDeclaredField("_blockingShuffleManager");
      manager.setAccessible(true);
      ShuffleManager own = ShuffleManager$.MODULE$.create(env.conf(), false);
      manager.set(env, own);
      try {
        Lane[] lanes = new Lane[LANES];
        for (int i = 0; i < LANES; i++) (lanes[i] = new Lane(script, i, millis, limit)).start();
        while (lanes[0].goesOn() | lanes[1].goesOn()) Thread.sleep(50L);
        String trouble = lanes[0].trouble().isEmpty() ? lanes[1].trouble() : lanes[0].trouble();
        for (int i = 0; i < parts.size(); i++) own.unregisterShuffle((Integer) ((Object[]) parts.get(i))[2]);
        StateStore$.MODULE$.stop(); // so far it has only state in the scratch folder
        return trouble;
      } finally {
        manager.set(env, null);
      }
    }
  }

  static List parts(byte[] script) {
    return (List) serializer().deserialize(
        ByteBuffer.wrap(script), Thread.currentThread().getContextClassLoader(), any());
  }

  /** One slot: runs a task of each stage in turn, repeatedly, until the time is up. */
  public static class Lane extends Thread {
    private static final long TASK_MILLIS = 5000L;
    private static final long HANGS_MILLIS = 30000L;
    private final byte[] script;
    private final int number;
    private final long millis;
    private final long limit;
    private final long began = System.currentTimeMillis();
    private volatile Task running;
    private volatile long since = began;
    private volatile String trouble = "";

    public Lane(byte[] script, int number, long millis, long limit) {
      super("rehearsal-" + number);
      this.script = script;
      this.number = number;
      this.millis = millis;
      this.limit = limit;
      setDaemon(true);
    }

    /** Whether to keep waiting; a task of a large batch is asked to stop, as its first rows are enough. */
    public boolean goesOn() {
      long age = System.currentTimeMillis() - since;
      Task task = running;
      if (task != null && age > TASK_MILLIS) task.kill(false, "rehearsed enough");
      return isAlive() && age < HANGS_MILLIS;
    }

    /** What went wrong, or nothing. */
    public String trouble() {
      return isAlive() ? " a task did not end within " + HANGS_MILLIS / 1000 + " s" : trouble;
    }

    private boolean within(long time) { return System.currentTimeMillis() - began < time; }

    public void run() {
      boolean good = true;
      for (int round = 0; good && trouble.isEmpty() && (round == 0 || within(millis)); round++) {
        List parts = parts(script);
        StringBuilder took = new StringBuilder();
        good = false;
        for (int i = number; i < parts.size() && (round == 0 && i == number || within(limit)); i += LANES) {
          since = System.currentTimeMillis();
          good |= play((Object[]) parts.get(i), (1L << 40) + (round * 1000L + i));
          took.append(" ").append(System.currentTimeMillis() - since);
        }
        LOG.info("rehearsal round " + round + " lane " + number + ", ms per stage:" + took);
      }
    }

    private boolean play(Object[] part, long id) {
      SparkEnv env = SparkEnv.get();
      Task task = (Task) part[0];
      TaskMemoryManager memory = new TaskMemoryManager(env.memoryManager(), id);
      task.localProperties_$eq((Properties) part[1]);
      task.setTaskMemoryManager(memory);
      running = task;
      try {
        task.run(id, 0, env.metricsSystem(), new scala.math.BigDecimal(java.math.BigDecimal.ONE),
            scala.collection.immutable.Map$.MODULE$.empty(), Option.empty());
        return true;
      } catch (Throwable error) {
        LOG.info("a rehearsed task ended early: " + error);
        for (Throwable e = error; e != null; e = e.getCause()) if (e instanceof LinkageError) trouble = " " + e;
        return false;
      } finally {
        running = null;
        env.blockManager().releaseAllLocksForTask(id);
        memory.cleanUpAllAllocatedMemory();
      }
    }
  }
}
