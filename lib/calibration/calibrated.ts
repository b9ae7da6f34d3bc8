import type { Task, TaskAnswer, TaskBatch } from '../backend.ts';
import { atTemperature, type Calibration, type Thresholds, temperatureOf, valueAtTemperature } from './calibration.ts';
import { groupsOf, isAutomated } from './thresholds.ts';

/**
 * Returns a copy of an answer with calibrated probabilities. Its `json` does not change, because scaling by a
 * temperature keeps the order of the options. An answer without probabilities is returned as it is.
 */
export function calibrated(answer: TaskAnswer, task: Task, calibration: Calibration): TaskAnswer {
  const { optionLogprobs, fields, absent, certainty } = answer;
  if (optionLogprobs) {
    const kind = (task.type === 'decide' && task.kind) || 'choice';
    return { ...answer, optionLogprobs: atTemperature(optionLogprobs, temperatureOf(calibration, kind)) };
  }
  if (!fields) return answer;
  const temperature = temperatureOf(calibration, 'field');
  return {
    ...answer,
    fields: fields.map(({ path, probability }) => ({
      path,
      probability: valueAtTemperature(probability, temperature),
    })),
    ...(absent === undefined ? {} : { absent: valueAtTemperature(absent, temperatureOf(calibration, 'absent')) }),
    ...(certainty === undefined ? {} : { certainty: valueAtTemperature(certainty, temperature) }),
  };
}

/**
 * Returns a calibrated answer that says whether it may be automated (`isAutomated`), if the batch asks for it; null if
 * there are no thresholds for such answers: for other tasks than questions of plain options, without calibration, and
 * in another number of orders.
 */
export function automated(
  answer: TaskAnswer,
  task: Task,
  { probabilities }: Pick<TaskBatch, 'probabilities'>,
  thresholds: Thresholds | undefined,
): TaskAnswer {
  const maxError = probabilities?.maxError;
  if (maxError === undefined) return answer;
  const { optionLogprobs } = answer;
  const applies = thresholds && probabilities?.calibrated && (probabilities.orders ?? 1) === thresholds.orders;
  if (!applies || task.type !== 'decide' || task.first !== undefined || !optionLogprobs) {
    return { ...answer, automated: null };
  }
  const groups = groupsOf(task.kind ?? 'choice', task.unsure ?? false, task.id);
  const probability = Math.exp(Math.max(...optionLogprobs));
  return { ...answer, automated: isAutomated(thresholds, { groups, probability }, maxError) };
}
