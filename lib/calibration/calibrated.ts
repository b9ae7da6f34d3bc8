import type { Task, TaskAnswer } from '../backend.ts';
import { atTemperature, type Calibration, temperatureOf, valueAtTemperature } from './calibration.ts';

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
    ...(absent === undefined ? {} : { absent: valueAtTemperature(absent, temperature) }),
    ...(certainty === undefined ? {} : { certainty: valueAtTemperature(certainty, temperature) }),
  };
}
