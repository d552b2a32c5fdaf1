package rheostat;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
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
  public final ConcurrentLinkedQueue moves = new ConcurrentLinkedQueue();  // what was moved, in words
  private final SparkContext context = SparkContext.getOrCreate();
  private final Method ready = ready();
  private final ConcurrentHashMap last = new ConcurrentHashMap();  // a query's state folder -> its run and executors

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

  private void look(List operators) {
    StatefulOperatorStateInfo any = about((StateStoreWriter) operators.get(0));
    List executors = usable();
    if (executors.isEmpty()) return;
    String now = any.queryRunId() + " " + executors;
    if (now.equals(last.put(any.checkpointLocation(), now))) return;
    try {
      spread(operators, executors);
    } catch (Exception error) {  // with its state where it was, the batch is only slower
      if (error instanceof InterruptedException) Thread.currentThread().interrupt();  // the query is being stopped
      moves.add("not spread over " + executors.size() + " executors: " + error);
    }
  }

  private void spread(List operators, List executors) {
    StateStoreCoordinatorRef coordinator =
        org.apache.spark.sql.execution.streaming.state.StateStoreCoordinatorRef$.MODULE$.forExecutor(context.env());
    Map hosts = hosts();
    Map total = none(executors);
    TreeSet to = new TreeSet();
    int all = 0;
    int moved = 0;
    for (int i = 0; i < operators.size(); i++) {
      StateStoreWriter operator = (StateStoreWriter) operators.get(i);
      int partitions = about(operator).numPartitions();
      int share = partitions / executors.size();
      int more = partitions % executors.size();  // so many executors may keep one more
      Map own = none(executors);
      List homeless = new ArrayList();
      boolean known = false;
      for (int part = 0; part < partitions; part++) {
        String home = home(coordinator, operator, part);
        known = known || home != null;
        int there = own.containsKey(home) ? count(own, home) : partitions;
        if (there < share || (there == share && more > 0)) {
          if (there == share) more--;
          add(own, home);
          add(total, home);
        } else {
          homeless.add(Integer.valueOf(part));
        }
      }
      all += partitions;
      if (!known) continue;  // its first batch: Spark spreads what has no place yet
      for (int j = 0; j < homeless.size(); j++) {
        String home = emptiest(executors, own, total);
        place(coordinator, operator, ((Integer) homeless.get(j)).intValue(), (String) hosts.get(home), home);
        add(own, home);
        add(total, home);
        to.add(home);
        moved++;
      }
    }
    if (moved > 0) moves.add(moved + " of " + all + " partitions moved to executor" + (to.size() > 1 ? "s " : " ") + join(to));
  }

  /** Executors that take tasks: registered, through with their rehearsal, and not on their way out. */
  private List usable() {
    List found = new ArrayList();
    if (!(context.schedulerBackend() instanceof org.apache.spark.ExecutorAllocationClient)) return found;
    if (!(context.taskScheduler() instanceof TaskSchedulerImpl)) return found;
    org.apache.spark.ExecutorAllocationClient backend = (org.apache.spark.ExecutorAllocationClient) context.schedulerBackend();
    TaskSchedulerImpl scheduler = (TaskSchedulerImpl) context.taskScheduler();
    List warm = warm();
    scala.collection.Iterator ids = backend.getExecutorIds().iterator();
    while (ids.hasNext()) {
      String id = (String) ids.next();
      boolean up = scheduler.isExecutorAlive(id) && backend.isExecutorActive(id);
      if (up && (warm == null || warm.contains(id))) found.add(id);
    }
    Collections.sort(found);
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

  private Map hosts() {
    Map found = new HashMap();
    scala.collection.Iterator all = context.statusStore().executorList(true).iterator();
    while (all.hasNext()) {
      ExecutorSummary one = (ExecutorSummary) all.next();
      found.put(one.id(), one.hostPort().substring(0, one.hostPort().lastIndexOf(':')));
    }
    return found;
  }

  private static String home(StateStoreCoordinatorRef coordinator, StateStoreWriter operator, int part) {
    scala.Option where = coordinator.getLocation(store(operator, part, operator.stateStoreNames().head()));
    if (where.isEmpty()) return null;
    String text = (String) where.get();  // executor_HOST_ID
    return text.substring(text.lastIndexOf('_') + 1);
  }

  private static void place(StateStoreCoordinatorRef coordinator, StateStoreWriter operator, int part, String host, String executor) {
    scala.collection.Iterator names = operator.stateStoreNames().iterator();
    while (names.hasNext())
      coordinator.reportActiveInstance(store(operator, part, names.next()), host, executor, scala.collection.immutable.Nil$.MODULE$);
  }

  private static StateStoreProviderId store(StateStoreWriter operator, int part, Object name) {
    StatefulOperatorStateInfo about = about(operator);
    StateStoreId id = new StateStoreId(about.checkpointLocation(), about.operatorId(), part, (String) name);
    return new StateStoreProviderId(id, about.queryRunId());
  }

  private static StatefulOperatorStateInfo about(StateStoreWriter operator) {
    return (StatefulOperatorStateInfo) operator.stateInfo().get();
  }

  private static String emptiest(List executors, Map own, Map total) {
    String best = (String) executors.get(0);
    for (int i = 1; i < executors.size(); i++) {
      String one = (String) executors.get(i);
      int difference = count(own, one) - count(own, best);
      if (difference < 0 || (difference == 0 && count(total, one) < count(total, best))) best = one;
    }
    return best;
  }

  private static Map none(List executors) {
    Map counts = new HashMap();
    for (int i = 0; i < executors.size(); i++) counts.put(executors.get(i), Integer.valueOf(0));
    return counts;
  }

  private static int count(Map counts, String executor) {
    return ((Integer) counts.get(executor)).intValue();
  }

  private static void add(Map counts, String executor) {
    counts.put(executor, Integer.valueOf(count(counts, executor) + 1));
  }

  private static String join(TreeSet words) {
    String all = words.toString();
    return all.substring(1, all.length() - 1);
  }
}
