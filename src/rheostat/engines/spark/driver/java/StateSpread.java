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
 * Spreads the state of a query evenly over the executors whenever these change.
 *
 * Spark runs a stateful task where its state was last, so new executors get none. Spark asks a coordinator where
 * that is, and a task that opens its state elsewhere reports this to the coordinator. We report it in advance: then
 * the next batch runs there and loads the state from the checkpoint. Only the excess on an executor moves.
 *
 * A rule over physical plans runs between two batches of its query, when no task has the state open.
 */
public class StateSpread extends scala.runtime.AbstractFunction1 {
  private static final int TRIES = 4;  // in the first batch of a run no location is known; later a task may run elsewhere
  public final ConcurrentLinkedQueue moves = new ConcurrentLinkedQueue();  // messages about moved partitions
  private final SparkContext context = SparkContext.getOrCreate();
  private final Method ready = ready();
  private final ConcurrentHashMap queries = new ConcurrentHashMap();  // a query's state folder -> QueryState

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
      List operators = new ArrayList();
      collect((SparkPlan) plan, operators);
      if (!operators.isEmpty()) spread.look(operators);
      return plan;
    }

    private static void collect(SparkPlan plan, List operators) {
      if (plan instanceof StateStoreWriter && ((StateStoreWriter) plan).stateInfo().isDefined()) operators.add(plan);
      scala.collection.Iterator below = plan.children().iterator();
      while (below.hasNext()) collect((SparkPlan) below.next(), operators);
    }
  }

  /** An executor and its Worker, which is identified by the page that shows the executor's log. */
  public static class Place {
    final String id;
    final String host;
    final String node;

    Place(ExecutorSummary summary) {
      String address = summary.hostPort();
      int colon = address.lastIndexOf(':');  // a new executor has no port yet
      scala.Option page = summary.executorLogs().get("stdout");
      id = summary.id();
      host = colon < 0 ? address : address.substring(0, colon);
      node = page.isEmpty() ? host : java.net.URI.create((String) page.get()).getAuthority();
    }
  }

  /** A query's run and executors when last checked, and how many partitions of its state each executor has. */
  public static class QueryState {
    final String version;
    int tries = 0;
    volatile Map held = new HashMap();

    QueryState(String version) {
      this.version = version;
    }
  }

  private void look(List operators) {
    StatefulOperatorStateInfo first = info((StateStoreWriter) operators.get(0));
    try {
      Map places = usable();
      String version = first.queryRunId() + " " + places.keySet();
      QueryState now = (QueryState) queries.get(first.checkpointLocation());
      if (now == null || !now.version.equals(version)) now = new QueryState(version);
      if (places.isEmpty() || now.tries >= TRIES) return;
      queries.put(first.checkpointLocation(), now);
      now.tries++;
      if (spread(operators, places, now)) now.tries = TRIES;
    } catch (Exception error) {  // without the move, the batch is only slower
      if (error instanceof InterruptedException) Thread.currentThread().interrupt();  // the query is being stopped
      moves.add("stays where it is: " + error);
    }
  }

  /** Move the excess from nodes and executors; return true if there was none. */
  private boolean spread(List operators, Map places, QueryState now) {
    StateStoreCoordinatorRef coordinator =
        org.apache.spark.sql.execution.streaming.state.StateStoreCoordinatorRef$.MODULE$.forExecutor(context.env());
    Map executorsOf = new HashMap();  // node -> its executors
    for (java.util.Iterator all = places.values().iterator(); all.hasNext();) add(executorsOf, ((Place) all.next()).node);
    Map others = others(now);
    Map held = new HashMap();
    TreeSet to = new TreeSet();
    int all = 0;
    int moved = 0;
    boolean located = true;
    for (int i = 0; i < operators.size(); i++) {
      StateStoreWriter operator = (StateStoreWriter) operators.get(i);
      int partitions = info(operator).numPartitions();
      int share = partitions / executorsOf.size();
      int more = partitions % executorsOf.size();  // this many nodes may keep one partition more
      int maxShare = share + (more > 0 ? 1 : 0);
      Map own = new HashMap();  // executor -> partitions, and node -> partitions
      List homeless = new ArrayList();
      boolean placed = false;
      for (int part = 0; part < partitions; part++) {
        String home = home(coordinator, operator, part);
        placed = placed || home != null;
        Place place = home == null ? null : (Place) places.get(home);
        int onNode = place == null ? maxShare : count(own, place.node);
        boolean fits = onNode < share || (onNode == share && more > 0);
        if (place != null && fits && count(own, "executor " + home) * count(executorsOf, place.node) < maxShare) {
          if (onNode == share) more--;
          settle(place, own, held);
        } else {
          homeless.add(Integer.valueOf(part));
        }
      }
      all += partitions;
      located = located && placed;
      for (int j = 0; placed && j < homeless.size(); j++) {  // in the first batch Spark spreads the state
        Place place = emptiest(places, own, held, others);
        place(coordinator, operator, ((Integer) homeless.get(j)).intValue(), place);
        settle(place, own, held);
        to.add(place.id);
        moved++;
      }
    }
    now.held = held;
    if (moved > 0) moves.add(moved + " of " + all + " partitions moved to executor" + (to.size() > 1 ? "s " : " ") + join(to));
    return located && moved == 0;
  }

  private static void settle(Place place, Map own, Map held) {
    add(own, place.node);
    add(own, "executor " + place.id);
    add(held, place.id);
  }

  private static Place emptiest(Map places, Map own, Map held, Map others) {
    Place best = null;
    for (java.util.Iterator all = places.values().iterator(); all.hasNext();) {
      Place place = (Place) all.next();
      int difference = best == null ? -1 : count(own, place.node) - count(own, best.node);
      if (difference == 0) difference = count(own, "executor " + place.id) - count(own, "executor " + best.id);
      if (difference == 0) difference = count(held, place.id) + count(others, place.id) - count(held, best.id) - count(others, best.id);
      if (difference < 0) best = place;
    }
    return best;
  }

  /** How many partitions of other queries each executor holds. */
  private Map others(QueryState now) {
    Map counts = new HashMap();
    for (java.util.Iterator all = queries.values().iterator(); all.hasNext();) {
      QueryState query = (QueryState) all.next();
      if (query == now) continue;
      for (java.util.Iterator ids = query.held.keySet().iterator(); ids.hasNext();) {
        String id = (String) ids.next();
        counts.put(id, Integer.valueOf(count(counts, id) + count(query.held, id)));
      }
    }
    return counts;
  }

  /** Executors that take tasks: registered, rehearsed, and not being decommissioned. */
  private Map usable() {
    Map executors = new TreeMap();
    if (!(context.schedulerBackend() instanceof org.apache.spark.ExecutorAllocationClient)) return executors;
    if (!(context.taskScheduler() instanceof TaskSchedulerImpl)) return executors;
    org.apache.spark.ExecutorAllocationClient backend = (org.apache.spark.ExecutorAllocationClient) context.schedulerBackend();
    TaskSchedulerImpl scheduler = (TaskSchedulerImpl) context.taskScheduler();
    List warm = warm();
    scala.collection.Iterator all = context.statusStore().executorList(true).iterator();
    while (all.hasNext()) {
      ExecutorSummary executor = (ExecutorSummary) all.next();
      boolean up = scheduler.isExecutorAlive(executor.id()) && backend.isExecutorActive(executor.id());
      if (up && (warm == null || warm.contains(executor.id()))) executors.put(executor.id(), new Place(executor));
    }
    return executors;
  }

  private List warm() {
    try {
      return ready == null ? null : Arrays.asList(((String) ready.invoke(null, new Object[0])).split(","));
    } catch (ReflectiveOperationException error) {
      return null;
    }
  }

  /** The plugin's method that lists rehearsed executors; null if executors do not rehearse. */
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
    StatefulOperatorStateInfo info = info(operator);
    StateStoreId id = new StateStoreId(info.checkpointLocation(), info.operatorId(), part, (String) name);
    return new StateStoreProviderId(id, info.queryRunId());
  }

  private static StatefulOperatorStateInfo info(StateStoreWriter operator) {
    return (StatefulOperatorStateInfo) operator.stateInfo().get();
  }

  private static int count(Map counts, String key) {
    Integer count = (Integer) counts.get(key);
    return count == null ? 0 : count.intValue();
  }

  private static void add(Map counts, String key) {
    counts.put(key, Integer.valueOf(count(counts, key) + 1));
  }

  private static String join(TreeSet words) {
    String all = words.toString();
    return all.substring(1, all.length() - 1);
  }
}
