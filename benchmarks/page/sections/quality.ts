import { finder, paragraph, sentence } from '../answer.ts';
import { worstOf } from '../goals.ts';
import { byCase, byMetric, type Section } from '../section.ts';

export const quality: Section = {
  bench: 'quality',
  title: 'Quality',
  answer(figures) {
    const of = finder(figures);
    const share = (set: string, metric: string) => of('assay/starter', set, metric);
    return sentence`On the handwritten texts (*natural*), the starter model decides ${share('natural', 'decide accuracy')}% of the questions correctly and finds ${share('natural', 'fields exact')}% of the fields; on generated ones (*held-out*), ${share('held-out', 'decide accuracy')}% and ${share('held-out', 'fields exact')}%.`;
  },
  method: () => [
    'The starter model answers two test sets over HTTP. *Held-out* was made by the generator of the training texts, from parts ' +
      'that were not in the training. *Natural* was written by hand. Larger models are not measured, because they would have ' +
      'to be downloaded.',
    [
      '- *As corrected by readers* compares the same answers with those of two readers who did not know the expected answers, ' +
        'where both agreed.',
      '- *Majority* and *random* are the scores of always giving the most common answer, and of guessing.',
      '- The word after the model’s name is the precision of the weights (`--precision`). Without one, it is the default of the ' +
        'machine, here the same as int8. *int4* has the published blocks of 4 bits; *float* computes the same weights in 32 bits.',
    ].join('\n'),
  ],
  tables: byCase,
};

export const orders: Section = {
  bench: 'orders',
  title: 'Options in several orders',
  answer(figures) {
    const of = finder(figures);
    const [one, two] = ['1 order', '2 orders'];
    return paragraph(
      sentence`Asking with the options in two orders instead of one lowers the share of answers that change when the options are reversed from ${of(one, 'held-out', 'flipped')}% to ${of(two, 'held-out', 'flipped')}% (held-out) and from ${of(one, 'natural', 'flipped')}% to ${of(two, 'natural', 'flipped')}% (natural).`,
      sentence`The branches take ${of(two, 'held-out', 'processor time of the branches')} and ${of(two, 'natural', 'processor time of the branches')} times the processor time. ${of(two, 'held-out', 'right')}% instead of ${of(one, 'held-out', 'right')}% of the answers are right (held-out), and ${of(two, 'natural', 'right')}% instead of ${of(one, 'natural', 'right')}% (natural).`,
    );
  },
  method: (figures) => [
    'The questions with options of both test sets are asked with the options in one order (as sent), in two orders (as sent ' +
      'and reversed), and in as many orders as there are options, at most eight. The log-probabilities are averaged.',
    '*Right*: answers as expected. *Flipped*: answers that change when the caller sends the options reversed. *Processor time* ' +
      'is that of the engine for the branches after a cached text, compared with one order. The words before the options are ' +
      'read once for all orders.',
    'One order is the default. The starter model was trained on options in any order, so it seldom flips, and on these few ' +
      'questions more orders are not measurably better.',
    figures.some(({ system }) => system === '64 questions')
      ? 'The last table compares 64 questions of `/v1/decisions`, with all probabilities, with the same questions as decide ' +
        'tasks of `/v1/tasks`: processor time of the server, for a new text each time.'
      : '',
  ],
  tables: byMetric,
  goals: (figures) => [
    ...worstOf(
      'processor time of the branches, two orders',
      { most: 1.6 },
      figures.filter(({ system, metric }) => system === '2 orders' && metric.startsWith('processor time')),
    ),
    ...worstOf(
      'processor time of 64 questions, of that of 64 decide tasks, which repeats within 5%',
      { most: 1.05 },
      figures.filter(({ system }) => system === '64 questions'),
    ),
  ],
};
