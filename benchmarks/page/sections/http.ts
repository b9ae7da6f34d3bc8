import { at } from '../../../lib/at.ts';
import type { Figure } from '../../report.ts';
import { finder, paragraph, sentence } from '../answer.ts';
import { type Goal, worstOf } from '../goals.ts';
import { growthPlot } from '../growth-plot.ts';
import { caseOf, metricOf, type Section, systemOf } from '../section.ts';
import { table } from '../table.ts';

const CLIENTS = 'the clients';
const APART = 'one caller apart';
/** Lines of the plot: the system and the metric that each shows, and its name in the legend. */
const DRAWN: readonly [system: string, metric: string, name: string][] = [
  [CLIENTS, 'answer, p50', 'answer, p50'],
  [CLIENTS, 'answer, p99', 'answer, p99'],
  [APART, 'refusal for load, p99', 'refusal for load, p99'],
  [APART, 'refusal of a wrong key, p99', 'refusal of a wrong key, p99'],
  [APART, 'health, p99', 'health, p99'],
];

const RUSH_WHY =
  'The refusal itself takes no time, as the server’s own log shows. The time is spent on opening all connections and reading all requests, on one thread of the server and one of the clients.';

export const http: Section = {
  bench: 'http',
  title: 'The whole server',
  answer(figures) {
    const of = finder(figures);
    const clients = (what: string, metric: string) => of(CLIENTS, what, metric);
    return paragraph(
      sentence`A server with the starter model answers ${clients('1 client', 'requests answered')} requests a second for one client, half of them within ${clients('1 client', 'answer, p50')} ms.`,
      sentence`For 16 clients it answers ${clients('16 clients', 'requests answered')} requests a second, half of them within ${clients('16 clients', 'answer, p50')} ms.`,
      sentence`With 1,000 clients it still answers ${clients('1000 clients', 'requests answered')} a second and refuses the rest with \`overloaded\`.`,
    );
  },
  method: () => [
    '`assay serve` runs with the starter model and its default settings, and logs to a file. Clients send one request after ' +
      'another about the texts of the natural test set: of ten requests, five decide, three extract and two are chats. A ' +
      'client that is refused returns when the server told it to.',
    'Clients start at a rate of 200 a second before the measurement begins. *In one moment* shows what happens if all connect ' +
      'at once, each with one request.',
    'Server, engine and clients share the machine, so there are three views:',
    [
      '- *The clients*: what the clients measured, including delays in their own process. *Late for their own timers* is a ' +
        'lower bound of these delays.',
      '- *One caller apart*: a separate process that sends one request of each kind at a time and does nothing else. A caller ' +
        'on another machine would see the same, plus the network.',
      '- *Inside the server*: from the server’s log, in whole milliseconds, from a request’s headers to the head of the ' +
        'response, without the wait in the queue.',
    ].join('\n'),
  ],
  tables: (figures) =>
    [...new Set(figures.map(systemOf))].flatMap((system) => [
      `${at(system, 0).toUpperCase()}${system.slice(1)}:`,
      table(
        figures.filter((figure) => figure.system === system),
        metricOf,
        caseOf,
      ),
    ]),
  plot: (figures) =>
    growthPlot(
      'The whole server, milliseconds',
      DRAWN.flatMap(([system, metric, name]) =>
        figures
          .filter((figure) => figure.system === system && figure.metric === metric)
          .map((figure) => ({ ...figure, system: name, metric: 'median' })),
      ),
      'clients at once',
      [{ title: 'Time to the whole answer', pattern: /^(\d+) clients?$/ }],
    ),
  goals(figures) {
    const p99 = (metric: string) =>
      figures.filter((figure) => figure.system === APART && figure.metric === `${metric}, p99`);
    const under = (metric: string, most: number): Goal[] => worstOf(`${metric}, p99`, { most }, p99(metric));
    return [
      ...under('health', 100),
      ...under('refusal for load', 50),
      ...under('refusal of a wrong key', 50),
      ...under('refusal of a bad body', 50),
      ...worstOf('refusal for load, p99, in a rush', { most: 50 }, rush(figures), RUSH_WHY),
    ];
  },
};

function rush(figures: readonly Figure[]): Figure[] {
  return figures.filter(
    ({ case: what, metric, system }) =>
      system === CLIENTS && metric === 'refusal for load, p99' && what.endsWith('in one moment'),
  );
}
