package rheostat;

import java.io.File;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.util.Collections;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskFailedReason;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * In Real-Time Mode every executor tells for how long rows held each of its tasks, waiting included.
 *
 * There a task runs as long as its batch, and Spark does not say when it only waits for rows. So its thread's stack is
 * looked at some twenty times a second, at random moments, as rows may come in step with a clock. Time in which the
 * thread was ready but had no core is not the row's: the kernel counts it. Compiled by Janino: no generics, no lambdas.
 */
public class ServiceTimes implements SparkPlugin {
  static final Logger LOG = LoggerFactory.getLogger("rheostat.ServiceTimes");
  static final int LEAST_MILLIS = 25;  // between two looks
  static final int MORE_MILLIS = 50;
  static final int MOST_TASKS = 4;  // per look
  static final int DEPTH = 32;  // of a stack: a Kafka source polls some 20 calls below the one that we look for
  private static final int MOST_LINES = 20000;
  private static final ConcurrentLinkedDeque LINES = new ConcurrentLinkedDeque();  // of tasks that ended, in the driver
  private static final AtomicInteger SIZE = new AtomicInteger();

  /** The tasks that ended since the last call, one per line: stage, partition, seconds. */
  public static String drain() {
    StringBuilder out = new StringBuilder();
    Object line;
    while ((line = LINES.poll()) != null) {
      SIZE.decrementAndGet();
      out.append((String) line).append('\n');
    }
    return out.toString();
  }

  public DriverPlugin driverPlugin() { return new Listener(); }

  public ExecutorPlugin executorPlugin() { return new Watch(); }

  /** In the driver. */
  public static class Listener implements DriverPlugin {
    public Map init(SparkContext context, PluginContext plugin) {
      drain();
      return Collections.emptyMap();
    }

    public Object receive(Object message) {
      LINES.add(message);
      if (SIZE.incrementAndGet() > MOST_LINES && LINES.poll() != null) SIZE.decrementAndGet();
      return null;
    }
  }

  /** A task that runs. */
  public static class Task {
    final long thread = Thread.currentThread().getId();
    final int stage;
    final int partition;
    private final String schedule;  // what the kernel counts of its thread; null: it does not say
    private final long delayedBefore;
    private long looked = System.nanoTime();
    private long served;

    Task(TaskContext context) {
      stage = context.stageId();
      partition = context.partitionId();
      schedule = schedule();
      delayedBefore = delayed();
    }

    private static String schedule() {
      try {
        return "/proc/self/task/" + new File("/proc/thread-self").getCanonicalFile().getName() + "/schedstat";
      } catch (Exception unknown) {
        return null;
      }
    }

    /** Nanoseconds for which the thread was ready but had no core, as on a busy machine or beyond a quota. */
    private long delayed() {
      try {
        String[] counts = new String(Files.readAllBytes(new File(schedule).toPath()), "US-ASCII").trim().split(" ");
        return Long.parseLong(counts[1]);
      } catch (Exception unknown) {
        return 0L;
      }
    }

    synchronized void look(boolean serves) {
      long now = System.nanoTime();
      if (serves) served += now - looked;
      looked = now;
    }

    synchronized String told() {
      return stage + " " + partition + " " + (served - (delayed() - delayedBefore)) / 1e9;
    }
  }

  /** In an executor; Spark calls it in the thread of the task. */
  public static class Watch implements ExecutorPlugin {
    final Map tasks = new ConcurrentHashMap();  // thread -> Task
    private PluginContext plugin;
    volatile boolean over;

    public void init(PluginContext context, Map settings) {
      plugin = context;
      new Sampler(this).start();
    }

    public void onTaskStart() {
      TaskContext context = TaskContext.get();
      if (context != null && !over) tasks.put(Thread.currentThread(), new Task(context));
    }

    public void onTaskSucceeded() {
      Task task = (Task) tasks.remove(Thread.currentThread());
      try {
        if (task != null) plugin.send(task.told());
      } catch (Exception error) {
        LOG.warn("how long rows held a task is not told: " + error);
      }
    }

    public void onTaskFailed(TaskFailedReason reason) { tasks.remove(Thread.currentThread()); }

    public void shutdown() { over = true; }
  }

  public static class Sampler extends Thread {
    private static final String SHUFFLE = "org.apache.spark.shuffle.streaming.StreamingShuffle";
    private final Watch watch;
    private final Random random = new Random();
    private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();

    Sampler(Watch watch) {
      super("rheostat-service-times");
      this.watch = watch;
      setDaemon(true);
    }

    public void run() {
      try {
        while (!watch.over) {
          Thread.sleep(LEAST_MILLIS + random.nextInt(MORE_MILLIS));
          look(watch.tasks.values().toArray());
        }
      } catch (Throwable error) {
        watch.over = true;
        watch.tasks.clear();
        LOG.warn("how long rows hold tasks is not told any more: " + error);
      }
    }

    /** Looks at some of the tasks, so that many cost no more than a few. */
    private void look(Object[] all) {
      if (all.length == 0) return;
      int first = random.nextInt(all.length);
      Task[] tasks = new Task[Math.min(all.length, MOST_TASKS)];
      long[] ids = new long[tasks.length];
      for (int i = 0; i < ids.length; i++) {
        tasks[i] = (Task) all[(first + i) % all.length];
        ids[i] = tasks[i].thread;
      }
      ThreadInfo[] seen = threads.getThreadInfo(ids, DEPTH);
      for (int i = 0; i < ids.length; i++) tasks[i].look(seen[i] != null && serves(seen[i]));
    }

    /** Whether rows hold the thread: it neither waits for rows nor until others take those that it made. */
    private static boolean serves(ThreadInfo thread) {
      StackTraceElement[] stack = thread.getStackTrace();
      boolean waits = thread.getThreadState() != Thread.State.RUNNABLE;
      boolean ours = false;  // whether a call of an operator is above
      for (int i = 0; i < stack.length; i++) {
        String name = stack[i].getClassName();
        if (name.endsWith(".LowLatencyReaderWrap")) return false;  // a source; Kafka's polls look as if they ran
        if (waits && name.startsWith(SHUFFLE + "Reader")) return false;
        if (waits && name.startsWith(SHUFFLE + "Writer") && (!ours || stack[i].getMethodName().equals("newBuffer"))) return false;
        ours = ours || !(name.startsWith("java.") || name.startsWith("jdk.") || name.startsWith("scala."));
      }
      return true;
    }
  }
}
