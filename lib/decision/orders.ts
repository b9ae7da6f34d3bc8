import { at } from '../at.ts';
import type { DecideTask } from '../backend.ts';

/**
 * Returns the orders in which a question shows its options, each as indices into the options. 1: as given. 2: as given
 * and reversed. More: the given order rotated by equal steps, so that each option appears at that many different
 * positions. Never more than there are options.
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

/** Returns the task with its options and their descriptions in another order. */
export function reordered(task: DecideTask, order: readonly number[]): DecideTask {
  if (!task.options) return task;
  const { descriptions, options } = task;
  return {
    ...task,
    options: order.map((i) => at(options, i)),
    ...(descriptions ? { descriptions: order.map((i) => descriptions[i] ?? null) } : {}),
  };
}
