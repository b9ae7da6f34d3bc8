import { useEffect, useRef } from 'preact/hooks';
import type { Answer } from './answer.ts';

export interface Outcome {
  answers: Answer[];
  /** The budget ended before the answers did. */
  cut: boolean;
  milliseconds: number;
  usage: { prompt_tokens: number; completion_tokens: number };
}

export function Results({ outcome }: { outcome: Outcome }) {
  const { answers, cut, milliseconds, usage } = outcome;
  const top = useRef<HTMLDivElement>(null);
  // On a phone the answers are below the tasks.
  useEffect(() => top.current?.scrollIntoView({ block: 'nearest' }), [outcome]);
  return (
    <div class="results" aria-live="polite" ref={top}>
      {cut && (
        <p class="note">
          The answers were cut: raise “Max output tokens” and ask again. Parts that were not reached are empty.
        </p>
      )}
      {answers.map(({ name, rows }) => (
        <section class="answer">
          <h3>{name}</h3>
          <dl>
            {rows.map(({ label, value }) => (
              <>
                <dt>{label}</dt>
                <dd>{value === null ? <em>not in the text</em> : value || <em>empty</em>}</dd>
              </>
            ))}
          </dl>
        </section>
      ))}
      <p class="figures">
        {milliseconds.toLocaleString('en')} ms · {usage.prompt_tokens} prompt tokens · {usage.completion_tokens} chosen
        tokens
      </p>
    </div>
  );
}
