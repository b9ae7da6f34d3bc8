import { useEffect, useRef } from 'preact/hooks';
import type { Answer, AnswerRow, Answers } from './answer.ts';

export interface ShownOutcome extends Answers {
  /** Context of the tasks, to which the positions of evidence refer. */
  context: string;
  milliseconds: number;
}

export function Results({ outcome }: { outcome: ShownOutcome }) {
  const { answers, context, cut, milliseconds, promptTokens, chosenTokens } = outcome;
  const top = useRef<HTMLDivElement>(null);
  // On a narrow screen the answers are below the tasks, so the page scrolls to them.
  useEffect(() => top.current?.scrollIntoView({ block: 'nearest' }), [outcome]);
  return (
    <div class="results" ref={top}>
      {cut && (
        <p class="note">
          The answers were cut: raise “Max output tokens” and ask again. Parts that were not reached are empty.
        </p>
      )}
      {answers.map((answer) => (
        <section class="answer">
          <h3>{answer.name}</h3>
          {answer.options.length > 0 ? <Options answer={answer} /> : <Rows rows={answer.rows} />}
          {answer.abstained && (
            <p class="empty">
              {answer.abstained === 'unsure'
                ? 'No answer: the text most likely does not say.'
                : 'No answer: no option was probable enough for this server.'}
            </p>
          )}
        </section>
      ))}
      <Evidence context={context} rows={answers.flatMap(({ rows }) => rows)} />
      <p class="figures">
        {milliseconds.toLocaleString('en')} ms · {promptTokens} prompt tokens · {chosenTokens} chosen tokens
      </p>
    </div>
  );
}

const percent = (probability: number) => `${(100 * probability).toFixed(1)}%`;

/** Shows a bar for each option, with the answer in bold, and one for what the text does not say. */
function Options({ answer: { options, rows, unsure, abstained } }: { answer: Answer }) {
  const chosen = abstained ? [] : rows.map(({ value }) => value);
  // With the last bar they sum to 1: a likely option means little in a text that does not say.
  const said = 1 - (unsure ?? 0);
  return (
    <ul class="options">
      {options.map(({ label, probability }) => (
        <li class={chosen.includes(label) ? 'chosen' : ''}>
          <span class="label">{label}</span>
          <meter aria-label={label} min={0} max={1} value={probability * said} />
          <span class="figure">{percent(probability * said)}</span>
        </li>
      ))}
      {unsure !== undefined && (
        <li class={abstained === 'unsure' ? 'chosen' : ''}>
          <span class="label">the text does not say</span>
          <meter aria-label="the text does not say" min={0} max={1} value={unsure} />
          <span class="figure">{percent(unsure)}</span>
        </li>
      )}
    </ul>
  );
}

function Rows({ rows }: { rows: readonly AnswerRow[] }) {
  return (
    <dl>
      {rows.map(({ label, value, probability }) => (
        <>
          <dt>{label}</dt>
          <dd>
            {value === null ? <em>not in the text</em> : value || <em>empty</em>}
            {probability !== undefined && <small> {percent(probability)}</small>}
          </dd>
        </>
      ))}
    </dl>
  );
}

/** Shows the context and marks the extracted values in it. */
function Evidence({ context, rows }: { context: string; rows: readonly AnswerRow[] }) {
  const found = rows
    .flatMap(({ label, evidence }) => (evidence ? [{ label, ...evidence }] : []))
    .sort((a, b) => a.start - b.start);
  if (found.length === 0) return null;
  let at = 0;
  const parts = found.flatMap(({ label, start, end }) => {
    // If values overlap, only the first is marked.
    if (start < at) return [];
    const before = context.slice(at, start);
    at = end;
    return [before, <mark title={label}>{context.slice(start, end)}</mark>];
  });
  return (
    <section class="answer">
      <h3>Found in the context</h3>
      <p class="evidence">
        {parts}
        {context.slice(at)}
      </p>
    </section>
  );
}
