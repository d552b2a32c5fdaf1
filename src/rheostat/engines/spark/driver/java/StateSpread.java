package rheostat;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.TaskSchedulerImpl;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter;
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo;
import org.apache.spark.sql.execution.streaming.state.StateStoreCoordinatorRef;
import org.apache.spark.sql.execution.streaming.state.StateStoreId;
import org.apache.spark.sql.execution.streaming.state.StateStoreProviderId;
import org.apache.spark.status.api.v1.ExecutorSummary;

/**
 * Spreads the state of a query evenly over the executors, whenever there are others than before.
 *
 * Spark runs a stateful task where its state was last, so new executors get none of it. Where that is, Spark
 * asks a coordinator, and a task that opens its state elsewhere tells the coordinator so. We tell it beforehand:
 * the next batch goes there, and loads the state from the checkpoint. Only what is too much on one executor moves.
 *
 * A rule over physical plans runs between two batches of its query, when no task has the state open.
 */
public class StateSpread extends scala.runtime.AbstractFunction1 {
  private static final int TRIES = 4;  // in the first batch of a run no place is known; a task may have gone elsewhere
  public final ConcurrentLinkedQueue moves = new ConcurrentLinkedQueue();  // what was moved, in words
  private final SparkContext context = SparkContext.getOrCreate();
  private final Method ready = ready();
  private final ConcurrentHashMap seen = new ConcurrentHashMap();  // a query's state folder -> Seen

  public Object apply(Object session) {
    return new Rules(this);
  }

  public static class Rules extends org.apache.spark.sql.execution.ColumnarRule {
    private final StateSpread spread;

    public Rules(StateSpread spread) {
      this.spread = spread;
    }

    public org.apache.spark.sql.catalyst.rules.Rule preColumnarTransitions() {
      return new Look(spread);
    }
  }

  public static class Look extends org.apache.spark.sql.catalyst.rules.Rule {
    private final StateSpread spread;

    public Look(StateSpread spread) {
      this.spread = spread;
    }

    public org.apache.spark.sql.catalyst.trees.TreeNode apply(org.apache.spark.sql.catalyst.trees.TreeNode plan) {
      List found = new ArrayList();
      collect((SparkPlan) plan, found);
      if (!found.isEmpty()) spread.look(found);
      return plan;
    }

    private static void collect(SparkPlan plan, List found) {
      if (plan instanceof StateStoreWriter && ((StateStoreWriter) plan).stateInfo().isDefined()) found.add(plan);
      scala.collection.Iterator below = plan.children().iterator();
      while (below.hasNext()) collect((SparkPlan) below.next(), found);
    }
  }

  /** An executor, and the Worker that it runs on, by the page on which that shows its log. */
  public static class Place {
    final String id;
    final String host;
    final String node;

    Place(ExecutorSummary about) {
      String address = about.hostPort();
      int colon = address.lastIndexOf(':');  // a new one has no port yet
      scala.Option page = about.executorLogs().get("stdout");
      id = about.id();
      host = colon < 0 ? address : address.substring(0, colon);
      node = page.isEmpty() ? host : java.net.URI.create((String) page.get()).getAuthority();
    }
  }

  /** How a query was found last, and how much of its state each executor has. */
  public static class Seen {
    final String as;
    int tries = 0;
    volatile Map held = new HashMap();

    Seen(String as) {
      this.as = as;
    }
  }

  private void look(List operators) {
    StatefulOperatorStateInfo any = about((StateStoreWriter) operators.get(0));
    try {
      Map places = usable();
      String as = any.queryRunId() + " " + places.keySet();
      Seen now = (Seen) seen.get(any.checkpointLocation());
      if (now == null || !now.as.equals(as)) now = new Seen(as);
      if (places.isEmpty() || now.tries >= TRIES) return;
      seen.put(any.checkpointLocation(), now);
      now.tries++;
      if (spread(operators, places, now)) now.tries = TRIES;
    } catch (Exception error) {  // with its state where it was, the batch is only slower
      if (error instanceof InterruptedException) Thread.currentThread().interrupt();  // the query is being stopped
      moves.add("stays where it is: " + error);
    }
  }

  /** Move what is too much on a node or an executor; true: nothing was. */
  private boolean spread(List operators, Map places, Seen now) {
    StateStoreCoordinatorRef coordinator =
        org.apache.spark.sql.execution.streaming.state.StateStoreCoordinatorRef$.MODULE$.forExecutor(context.env());
    Map executorsOf = new HashMap();  // node -> its executors
    for (java.util.Iterator all = places.values().iterator(); all.hasNext();) add(executorsOf, ((Place) all.next()).node);
    Map others = others(now);
    Map held = new HashMap();
    TreeSet to = new TreeSet();
    int all = 0;
    int moved = 0;
    boolean known = true;
    for (int i = 0; i < operators.size(); i++) {
      StateStoreWriter operator = (StateStoreWriter) operators.get(i);
      int partitions = about(operator).numPartitions();
      int share = partitions / executorsOf.size();
      int more = partitions % executorsOf.size();  // so many nodes may keep one more
      int most = share + (more > 0 ? 1 : 0);
      Map own = new HashMap();  // executor -> partitions, and node -> partitions
      List homeless = new ArrayList();
      boolean placed = false;
      for (int part = 0; part < partitions; part++) {
        String home = home(coordinator, operator, part);
        placed = placed || home != null;
        Place place = home == null ? null : (Place) places.get(home);
        int there = place == null ? most : count(own, place.node);
        boolean fits = there < share || (there == share && more > 0);
        if (place != null && fits && count(own, "executor " + home) * count(executorsOf, place.node) < most) {
          if (there == share) more--;
          settle(place, own, held);
        } else {
          homeless.add(Integer.valueOf(part));
        }
      }
      all += partitions;
      known = known && placed;
      for (int j = 0; placed && j < homeless.size(); j++) {  // in its first batch Spark spreads it
        Place place = emptiest(places, own, held, others);
        place(coordinator, operator, ((Integer) homeless.get(j)).intValue(), place);
        settle(place, own, held);
        to.add(place.id);
        moved++;
      }
    }
    now.held = held;
    if (moved > 0) moves.add(moved + " of " + all + " partitions moved to executor" + (to.size() > 1 ? "s " : " ") + join(to));
    return known && moved == 0;
  }

  private static void settle(Place place, Map own, Map held) {
    add(own, place.node);
    add(own, "executor " + place.id);
    add(held, place.id);
  }

  private static Place emptiest(Map places, Map own, Map held, Map others) {
    Place best = null;
    for (java.util.Iterator all = places.values().iterator(); all.hasNext();) {
      Place one = (Place) all.next();
      int difference = best == null ? -1 : count(own, one.node) - count(own, best.node);
      if (difference == 0) difference = count(own, "executor " + one.id) - count(own, "executor " + best.id);
      if (difference == 0) difference = count(held, one.id) + count(others, one.id) - count(held, best.id) - count(others, best.id);
      if (difference < 0) best = one;
    }
    return best;
  }

  /** What the executors hold of other queries. */
  private Map others(Seen now) {
    Map counts = new HashMap();
    for (java.util.Iterator all = seen.values().iterator(); all.hasNext();) {
      Seen one = (Seen) all.next();
      if (one == now) continue;
      for (java.util.Iterator ids = one.held.keySet().iterator(); ids.hasNext();) {
        String id = (String) ids.next();
        counts.put(id, Integer.valueOf(count(counts, id) + count(one.held, id)));
      }
    }
    return counts;
  }

  /** Executors that take tasks: registered, through with their rehearsal, and not on their way out. */
  private Map usable() {
    Map found = new TreeMap();
    if (!(context.schedulerBackend() instanceof org.apache.spark.ExecutorAllocationClient)) return found;
    if (!(context.taskScheduler() instanceof TaskSchedulerImpl)) return found;
    org.apache.spark.ExecutorAllocationClient backend = (org.apache.spark.ExecutorAllocationClient) context.schedulerBackend();
    TaskSchedulerImpl scheduler = (TaskSchedulerImpl) context.taskScheduler();
    List warm = warm();
    scala.collection.Iterator all = context.statusStore().executorList(true).iterator();
    while (all.hasNext()) {
      ExecutorSummary one = (ExecutorSummary) all.next();
      boolean up = scheduler.isExecutorAlive(one.id()) && backend.isExecutorActive(one.id());
      if (up && (warm == null || warm.contains(one.id()))) found.put(one.id(), new Place(one));
    }
    return found;
  }

  private List warm() {
    try {
      return ready == null ? null : Arrays.asList(((String) ready.invoke(null, new Object[0])).split(","));
    } catch (ReflectiveOperationException error) {
      return null;
    }
  }

  /** The plugin's word on who rehearsed; null where executors do not rehearse. */
  private static Method ready() {
    try {
      ClassLoader loader = Thread.currentThread().getContextClassLoader();
      return Class.forName("rheostat.Rehearsal", true, loader).getMethod("ready", new Class[0]);
    } catch (ReflectiveOperationException error) {
      return null;
    }
  }

  private static String home(StateStoreCoordinatorRef coordinator, StateStoreWriter operator, int part) {
    scala.Option where = coordinator.getLocation(store(operator, part, operator.stateStoreNames().head()));
    if (where.isEmpty()) return null;
    String text = (String) where.get();  // executor_HOST_ID
    return text.substring(text.lastIndexOf('_') + 1);
  }

  private static void place(StateStoreCoordinatorRef coordinator, StateStoreWriter operator, int part, Place place) {
    scala.collection.Iterator names = operator.stateStoreNames().iterator();
    while (names.hasNext())
      coordinator.reportActiveInstance(store(operator, part, names.next()), place.host, place.id, scala.collection.immutable.Nil$.MODULE$);
  }

  private static StateStoreProviderId store(StateStoreWriter operator, int part, Object name) {
    StatefulOperatorStateInfo about = about(operator);
    StateStoreId id = new StateStoreId(about.checkpointLocation(), about.operatorId(), part, (String) name);
    return new StateStoreProviderId(id, about.queryRunId());
  }

  private static StatefulOperatorStateInfo about(StateStoreWriter operator) {
    return (StatefulOperatorStateInfo) operator.stateInfo().get();
  }

  private static int count(Map counts, String key) {
    Integer found = (Integer) counts.get(key);
    return found == null ? 0 : found.intValue();
  }

  private static void add(Map counts, String key) {
    counts.put(key, Integer.valueOf(count(counts, key) + 1));
  }

  private static String join(TreeSet words) {
    String all = words.toString();
    return all.substring(1, all.length() - 1);
  }
}
