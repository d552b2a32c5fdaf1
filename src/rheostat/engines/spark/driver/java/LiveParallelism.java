package rheostat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.CollectMetrics;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/**
 * Gives every operator its own stage, with the number of tasks that it should have now.
 *
 * Spark plans each batch anew, so the numbers in `tasks` apply from the next batch on. An operator begins above
 * the observe() of the operator before it, and there the rule inserts a shuffle. It runs after Spark's own rules,
 * so these cannot push a filter below the shuffle, into another operator's stage. Optimizer rules run until
 * nothing changes, so the shuffles of the previous round are removed first.
 */
public class LiveParallelism extends org.apache.spark.sql.catalyst.rules.Rule {
  public final ConcurrentHashMap tasks = new ConcurrentHashMap();  // observe's name -> tasks of what follows it
  public final ConcurrentHashMap keys = new ConcurrentHashMap();  // observe's name -> columns that partition its rows
  public final ConcurrentHashMap shuffles = new ConcurrentHashMap();  // query/rank of a script's own shuffle -> tasks

  public TreeNode apply(TreeNode plan) {
    LogicalPlan bare = (LogicalPlan) ((LogicalPlan) plan).transformUp(new Change(this, false));
    return bare.transformUp(new Change(this, true));
  }

  boolean isOurs(LogicalPlan below) {
    return below instanceof CollectMetrics && tasks.containsKey(((CollectMetrics) below).name());
  }

  Object put(CollectMetrics below) {
    int count = ((Integer) tasks.get(below.name())).intValue();
    scala.collection.immutable.Seq columns = columns(below);
    if (columns == null) return new Repartition(count, true, below);
    return new RepartitionByExpression(columns, below, scala.Option.apply(Integer.valueOf(count)), scala.Option.empty());
  }

  private scala.collection.immutable.Seq columns(CollectMetrics below) {
    String[] wanted = (String[]) keys.get(below.name());
    if (wanted == null || wanted.length == 0) return null;
    List columns = new ArrayList();
    for (int i = 0; i < wanted.length; i++) {
      scala.collection.Iterator output = below.output().iterator();
      while (output.hasNext()) {
        Attribute column = (Attribute) output.next();
        if (column.name().equalsIgnoreCase(wanted[i])) columns.add(column);
      }
    }
    // Partitioned by the keys alone, the rows would also suit a stateful operator on the same keys, in one stage.
    columns.add(org.apache.spark.sql.catalyst.expressions.Literal$.MODULE$.apply(Integer.valueOf(0)));
    return scala.jdk.javaapi.CollectionConverters.asScala(columns).toSeq();
  }

  Object resize(LogicalPlan shuffle) {
    if (shuffles.isEmpty() || !shuffle.isStreaming()) return shuffle;  // leave the plans inside foreachBatch as they are
    String query = org.apache.spark.SparkContext.getOrCreate().getLocalProperty("sql.streaming.queryId");
    Object count = shuffles.get(query + "/" + rank(shuffle));
    if (count == null) return shuffle;
    int wanted = ((Integer) count).intValue();
    if (shuffle instanceof Repartition) {
      Repartition r = (Repartition) shuffle;
      return r.numPartitions() == wanted ? r : r.copy(wanted, true, r.child());
    }
    RepartitionByExpression r = (RepartitionByExpression) shuffle;
    if (r.numPartitions() == wanted) return r;
    return r.copy(r.partitionExpressions(), r.child(), scala.Option.apply(count), r.optAdvisoryPartitionSize());
  }

  static boolean isShuffle(Object node) {
    return node instanceof RepartitionByExpression || (node instanceof Repartition && ((Repartition) node).shuffle());
  }

  private static int rank(LogicalPlan node) {  // 1 for the lowest shuffle of the plan
    int below = isShuffle(node) ? 1 : 0;
    scala.collection.Iterator children = node.children().iterator();
    while (children.hasNext()) below += rank((LogicalPlan) children.next());
    return below;
  }

  public static class Change extends scala.runtime.AbstractPartialFunction {
    private final LiveParallelism rule;
    private final boolean puts;

    public Change(LiveParallelism rule, boolean puts) {
      this.rule = rule;
      this.puts = puts;
    }

    public boolean isDefinedAt(Object node) {
      return puts ? rule.isOurs((LogicalPlan) node) || isShuffle(node) : isShuffle(node);
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      if (!isShuffle(node)) return rule.put((CollectMetrics) node);
      LogicalPlan below = (LogicalPlan) ((LogicalPlan) node).children().head();
      if (puts) return rule.resize((LogicalPlan) node);
      return rule.isOurs(below) ? below : node;
    }
  }
}
