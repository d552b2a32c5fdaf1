package rheostat;

import com.sun.management.GarbageCollectorMXBean;
import com.sun.management.GcInfo;
import java.io.File;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.lang.management.MemoryUsage;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Every executor tells the driver once a second what it and its Python workers use, on clusters of any kind.
 *
 * Spark's own executor metrics know no CPU time, nothing of the compilers, and come every ten seconds. Compiled by
 * Janino: no generics, no lambdas. What /proc does not say is left out: missing is not zero.
 */
public class Vitals implements SparkPlugin {
  static final Logger LOG = LoggerFactory.getLogger("rheostat.Vitals");
  static final long PERIOD_MILLIS = 1000L;
  static final long SILENT_MILLIS = 30000L;
  private static final Map LATEST = new ConcurrentHashMap();  // executor id -> {when it came, what it says}

  /** The latest of each executor that was heard lately, one per line: its id, then JSON. */
  public static String latest() {
    long now = System.currentTimeMillis();
    StringBuilder lines = new StringBuilder();
    List ids = new ArrayList(LATEST.keySet());
    for (int i = 0; i < ids.size(); i++) {
      Object[] heard = (Object[]) LATEST.get(ids.get(i));
      if (now - ((Long) heard[0]).longValue() > SILENT_MILLIS) LATEST.remove(ids.get(i));
      else lines.append(ids.get(i)).append(' ').append(heard[1]).append('\n');
    }
    return lines.toString();
  }

  public DriverPlugin driverPlugin() { return new Listener(); }

  public ExecutorPlugin executorPlugin() { return new Teller(); }

  /** In the driver: keeps what each executor said last. */
  public static class Listener implements DriverPlugin {
    public Map init(SparkContext context, PluginContext plugin) {
      LATEST.clear();
      return Collections.emptyMap();
    }

    public Object receive(Object message) {
      String[] words = ((String) message).split(" ", 2);
      LATEST.put(words[0], new Object[] {Long.valueOf(System.currentTimeMillis()), words[1]});
      return null;
    }
  }

  /** In an executor: tells the driver. */
  public static class Teller implements ExecutorPlugin {
    private volatile boolean over;

    public void init(PluginContext plugin, Map settings) { new Pulse(this, plugin).start(); }

    public void shutdown() { over = true; }
  }

  public static class Pulse extends Thread {
    private final Teller teller;
    private final PluginContext plugin;
    private final Body body = new Body();

    public Pulse(Teller teller, PluginContext plugin) {
      super("rheostat-vitals");
      this.teller = teller;
      this.plugin = plugin;
      setDaemon(true);
    }

    public void run() {
      try {
        while (!teller.over) {
          plugin.send(plugin.executorID() + " " + body.look());
          Thread.sleep(PERIOD_MILLIS);
        }
      } catch (Throwable error) {
        if (!teller.over) LOG.warn("what this executor uses is not told any more: " + error);
      }
    }
  }

  /** This process with all that it started. */
  public static class Body {
    private static final double TICKS = 100.0;  // a second, in /proc on every Linux
    private static final int LOOKS = 5;  // after which forked memory is measured again: 3 ms of CPU for each worker
    private int looks;
    private double forked;  // bytes of Python workers at the latest measurement
    private final Map compiled = new HashMap();  // thread id -> CPU ticks; a compiler's thread may end
    private final Set others = new HashSet();  // ids of threads that do not compile

    public String look() throws Exception {
      StringBuilder json = new StringBuilder("{\"at\":").append(System.nanoTime() / 1000000L);
      double gc = 0.0;
      long ended = -1L;
      Map after = null;
      Object[] collectors = ManagementFactory.getGarbageCollectorMXBeans().toArray();
      for (int i = 0; i < collectors.length; i++) {
        gc += Math.max(0L, ((java.lang.management.GarbageCollectorMXBean) collectors[i]).getCollectionTime()) / 1000.0;
        if (!(collectors[i] instanceof GarbageCollectorMXBean)) continue;
        GcInfo last = ((GarbageCollectorMXBean) collectors[i]).getLastGcInfo();
        if (last == null || last.getEndTime() <= ended) continue;
        ended = last.getEndTime();
        after = last.getMemoryUsageAfterGc();
      }
      json.append(",\"gc_seconds\":").append(gc);
      if (after != null) json.append(",\"heap\":").append(heap(after) / Runtime.getRuntime().maxMemory());
      double loading = Counters.seconds("sun.cls.time");
      if (loading >= 0.0) json.append(",\"load_seconds\":").append(loading);
      if (new File("/proc/self/stat").exists()) {
        json.append(",\"compile_seconds\":").append(compileTicks() / TICKS);
        tree(json);
      }
      return json.append('}').toString();
    }

    /** Bytes of the heap that the latest collection left. */
    private static double heap(Map after) {
      double used = 0.0;
      Object[] pools = ManagementFactory.getMemoryPoolMXBeans().toArray();
      for (int i = 0; i < pools.length; i++) {
        MemoryPoolMXBean pool = (MemoryPoolMXBean) pools[i];
        MemoryUsage left = (MemoryUsage) after.get(pool.getName());
        if (pool.getType() == MemoryType.HEAP && left != null) used += left.getUsed();
      }
      return used;
    }

    private double compileTicks() throws Exception {
      String[] threads = new File("/proc/self/task").list();
      for (int i = 0; threads != null && i < threads.length; i++) {
        if (others.contains(threads[i])) continue;
        String stat = read("/proc/self/task/" + threads[i] + "/stat");
        if (stat.contains("(C1 Compiler") || stat.contains("(C2 Compiler")) {
          compiled.put(threads[i], Double.valueOf(ticks(stat, false)));
        } else others.add(threads[i]);
      }
      double sum = 0.0;
      Object[] each = compiled.values().toArray();
      for (int i = 0; i < each.length; i++) sum += ((Double) each[i]).doubleValue();
      return sum;
    }

    /** CPU and memory of the process and its descendants, as Python workers are; those that ended count, too. */
    private void tree(StringBuilder json) throws Exception {
      Class handles = Class.forName("java.lang.ProcessHandle"); // Janino calls no static method of an interface
      ProcessHandle self = (ProcessHandle) handles.getMethod("current", new Class[0]).invoke(null, new Object[0]);
      Object[] below = self.descendants().toArray();
      double cpu = ticks(read("/proc/self/stat"), true) / TICKS;
      boolean measure = looks++ % LOOKS == 0;
      if (measure) forked = 0.0;
      for (int i = 0; i < below.length; i++) {
        String folder = "/proc/" + ((ProcessHandle) below[i]).pid();
        cpu += ticks(read(folder + "/stat"), true) / TICKS;
        if (measure) forked += shared(folder);
      }
      double bytes = forked + kilobytes(read("/proc/self/status"), "RssAnon:");
      json.append(",\"cpu_seconds\":").append(cpu).append(",\"memory_bytes\":").append(bytes);
    }

    private static double ticks(String stat, boolean withChildren) {
      if (stat.isEmpty()) return 0.0;
      String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");  // the first is the process's state
      double sum = 0.0;
      for (int i = 11; i < (withChildren ? 15 : 13); i++) sum += Double.parseDouble(fields[i]);
      return sum;
    }

    /** Memory that cannot be dropped and read again from a file; of what forked processes share, each its part. */
    private static double shared(String folder) {
      String rollup = read(folder + "/smaps_rollup");
      if (rollup.contains("Pss_Anon:")) return kilobytes(rollup, "Pss_Anon:");
      return kilobytes(read(folder + "/status"), "RssAnon:");
    }

    private static double kilobytes(String text, String name) {
      int at = text.indexOf(name);
      if (at < 0) return 0.0;
      return 1024.0 * Double.parseDouble(text.substring(at + name.length(), text.indexOf("kB", at)).trim());
    }

    /** A file of /proc; empty if the process or the thread has ended. */
    private static String read(String path) {
      try {
        return new String(Files.readAllBytes(new File(path).toPath()), "US-ASCII");
      } catch (Exception gone) {
        return "";
      }
    }
  }

  /**
   * The counters that HotSpot keeps of itself in a file, as jstat reads it: no bean tells the time of class loading.
   *
   * From byte 24 on: where the first entry is, and how many there are. An entry: its length, where its name is, its
   * vector's length (0: it is no vector), its type, ..., where its value is. A JVM may keep none (-XX:-UsePerfData).
   */
  public static class Counters {
    private static final String FOLDER = "/tmp/hsperfdata_";  // on every Linux, whatever java.io.tmpdir is

    /** A counter of time; -1: not known. */
    public static double seconds(String name) {
      try {
        ByteBuffer all = read();
        return value(all, name) / (double) value(all, "sun.os.hrt.frequency");
      } catch (Exception unknown) {
        return -1.0;
      }
    }

    private static ByteBuffer read() throws Exception {
      long pid = ManagementFactory.getRuntimeMXBean().getPid();
      ByteBuffer all = ByteBuffer.wrap(
          Files.readAllBytes(new File(FOLDER + System.getProperty("user.name") + "/" + pid).toPath()));
      return all.order(all.get(4) == 1 ? ByteOrder.LITTLE_ENDIAN : ByteOrder.BIG_ENDIAN);
    }

    private static long value(ByteBuffer all, String name) {
      byte[] wanted = (name + '\0').getBytes();
      int at = all.getInt(24);
      for (int left = all.getInt(28); left > 0; left--) {
        int start = at + all.getInt(at + 4);
        boolean isLong = all.getInt(at + 8) == 0 && all.get(at + 12) == 'J';
        if (isLong && Arrays.equals(wanted, Arrays.copyOfRange(all.array(), start, start + wanted.length))) {
          return all.getLong(at + all.getInt(at + 16));
        }
        at += all.getInt(at);
      }
      throw new IllegalArgumentException(name);
    }
  }
}
