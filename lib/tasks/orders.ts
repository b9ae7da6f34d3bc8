import { at } from '../at.ts';
import type { DecideTask } from '../backend.ts';

/**
 * Returns the orders in which a question shows its options to the model, each as a list of option indices: for one
 * order, the given one; for two, the given one and its reverse; for more, the given one rotated by equal steps, which
 * puts each option at as many different positions. There are never more orders than options.
 *
 * @param options number of options, at least 1
 * @param orders number of orders, at least 1
 */
export function orderings(options: number, orders: number): number[][] {
  const given = Array.from({ length: options }, (_, i) => i);
  const count = Math.min(orders, options);
  if (count === 2) return [given, given.toReversed()];
  return Array.from({ length: count }, (_, turn) => {
    const first = Math.floor((turn * options) / count);
    return [...given.slice(first), ...given.slice(0, first)];
  });
}

/**
 * Returns the task with its options and their descriptions in another order. A task without options is returned as it
 * is.
 *
 * @param order indices of the options in the new order
 */
export function reordered(task: DecideTask, order: readonly number[]): DecideTask {
  if (!task.options) return task;
  const { descriptions, options } = task;
  return {
    ...task,
    options: order.map((i) => at(options, i)),
    ...(descriptions ? { descriptions: order.map((i) => descriptions[i] ?? null) } : {}),
  };
}
