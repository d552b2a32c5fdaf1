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
 * Gives every operator a stage of its own, with the number of tasks that it shall have now.
 *
 * Spark plans each batch anew, so what `tasks` holds counts from the next batch on. An operator begins above
 * the observe() of the one before it: there the rule puts a shuffle. It does so after Spark's own rules, which
 * therefore cannot push a filter below it, into somebody else's stage. Optimizer rules run until nothing
 * changes any more, so the shuffles of the last round are taken out first.
 */
public class LiveParallelism extends org.apache.spark.sql.catalyst.rules.Rule {
  public final ConcurrentHashMap tasks = new ConcurrentHashMap();  // observe's name -> tasks of what follows it
  public final ConcurrentHashMap keys = new ConcurrentHashMap();  // observe's name -> columns that stay together
  public final ConcurrentHashMap shuffles = new ConcurrentHashMap();  // query/a script's own shuffle, from below -> tasks

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
    List found = new ArrayList();
    for (int i = 0; i < wanted.length; i++) {
      scala.collection.Iterator output = below.output().iterator();
      while (output.hasNext()) {
        Attribute column = (Attribute) output.next();
        if (column.name().equalsIgnoreCase(wanted[i])) found.add(column);
      }
    }
    // Partitioned by the keys alone it would do for a stateful operator on the same keys, and share its stage.
    found.add(org.apache.spark.sql.catalyst.expressions.Literal$.MODULE$.apply(Integer.valueOf(0)));
    return scala.jdk.javaapi.CollectionConverters.asScala(found).toSeq();
  }

  Object resize(LogicalPlan shuffle) {
    if (shuffles.isEmpty() || !shuffle.isStreaming()) return shuffle;  // what foreachBatch does is the script's own
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
