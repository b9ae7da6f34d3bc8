import { useLayoutEffect, useState } from 'preact/hooks';
import * as v from 'valibot';
import type { ModelCapabilities } from '../../../lib/schema/model-list.ts';
import { call } from '../api.ts';
import { MediaField } from '../media/media-field.tsx';
import { withoutContent } from '../media/media-file.ts';
import { Problem } from '../problem.tsx';
import { readDecisions, readExtractions, readTasks } from './answer.ts';
import { complaint, INPUT_EXAMPLES, type InputExample, isExample } from './examples.ts';
import { RequestView } from './request-view.tsx';
import { Results, type ShownOutcome } from './results.tsx';
import {
  type Draft,
  decisionsRequest,
  extractionsRequest,
  hasFields,
  hasProbabilities,
  newTask,
  StoredDraft,
  tasksRequest,
} from './task.ts';
import { TaskList } from './task-list.tsx';

// The formats in which a draft may be asked. Typed fields need the last one.
const TASKS = { path: '/v1/tasks', body: tasksRequest, read: readTasks };
const DECISIONS = { path: '/v1/decisions', body: decisionsRequest, read: readDecisions };
const EXTRACTIONS = { path: '/v1/extractions', body: extractionsRequest, read: readExtractions };

/**
 * Shows a context, a list of tasks about it, and their answers. `model` is the id of the loaded model, empty if there
 * is none, and `abilities` what it can do; `loading` is true while one is being loaded, when nothing can be asked.
 */
export function TasksTab({
  model,
  abilities,
  loading,
}: {
  model: string;
  abilities: ModelCapabilities | null;
  loading: boolean;
}) {
  const [draft, setDraft] = useState<Draft>(() => storedDraft() ?? complaint.make());
  // Stored before the browser paints, because a reload right after a change must not lose it.
  useLayoutEffect(() => storeDraft(draft), [draft]);
  const [outcome, setOutcome] = useState<ShownOutcome | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [running, setRunning] = useState<AbortController | null>(null);
  const [probabilities, setProbabilities] = useState(true);
  const scored = probabilities && hasProbabilities(draft);
  const form = hasFields(draft) ? EXTRACTIONS : scored ? DECISIONS : TASKS;
  const { path } = form;
  const bodyOf = (sent: Draft) => form.body(sent, model || 'assay/starter');
  const shown = draft.media ? { ...draft, media: withoutContent(draft.media) } : draft;

  const start = (example: InputExample) => {
    if (!isExample(draft) && !confirm(`Replace the context and the tasks with the example “${example.title}”?`)) return;
    setDraft(example.make());
    setOutcome(null);
    setError(null);
  };

  const ask = async () => {
    const stop = new AbortController();
    setRunning(stop);
    setError(null);
    const began = performance.now();
    try {
      const response = await (await call(path, { body: bodyOf(draft), signal: stop.signal })).json();
      const answers = form.read(draft.tasks, response);
      setOutcome({ ...answers, context: draft.context, milliseconds: Math.round(performance.now() - began) });
    } catch (cause) {
      if (!stop.signal.aborted) setError(cause);
      setOutcome(null);
    }
    setRunning(null);
  };

  return (
    <form
      class="split"
      onSubmit={(event) => {
        event.preventDefault();
        if (!running && !loading) void ask();
      }}
      onKeyDown={(event) => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
      }}
    >
      <div class="input">
        <div class="row">
          <fieldset class="examples">
            <legend>Start from an example</legend>
            {INPUT_EXAMPLES.map((example) => (
              <button type="button" onClick={() => start(example)}>
                {example.title}
              </button>
            ))}
          </fieldset>
          <label for="max-tokens" class="narrow">
            Max output tokens
            <input
              id="max-tokens"
              type="number"
              min={1}
              max={4096}
              required
              value={Number.isNaN(draft.maxOutputTokens) ? '' : draft.maxOutputTokens}
              onInput={(event) => setDraft({ ...draft, maxOutputTokens: event.currentTarget.valueAsNumber })}
            />
          </label>
        </div>
        <label for="context">
          Context
          <textarea
            id="context"
            rows={6}
            value={draft.context}
            onInput={(event) => setDraft({ ...draft, context: event.currentTarget.value })}
          />
        </label>
        <MediaField
          id="media"
          label="Image or recording (for models that read them)"
          media={draft.media}
          onChange={(media) => {
            setDraft({ ...draft, media });
            setError(null);
          }}
          onError={setError}
        />
        <TaskList tasks={draft.tasks} abilities={abilities} onChange={(tasks) => setDraft({ ...draft, tasks })} />
        <div class="row actions">
          <button type="submit" class="primary" disabled={running !== null || loading}>
            {loading ? 'Loading the model…' : running ? 'Asking…' : 'Ask'}
          </button>
          {running && (
            <button type="button" onClick={() => running.abort()}>
              Stop
            </button>
          )}
          <span class="hint">Ctrl + Enter</span>
          <label class="check" title="Asked as POST /v1/decisions; without it, as POST /v1/tasks">
            <input
              type="checkbox"
              checked={scored || hasFields(draft)}
              disabled={!hasProbabilities(draft) || hasFields(draft)}
              onChange={(event) => setProbabilities(event.currentTarget.checked)}
            />
            Probabilities and evidence
          </label>
        </div>
      </div>
      <div class="output">
        <h2>Answers</h2>
        <p role="status" class="visually-hidden">
          {running ? 'Asking' : outcome ? `${outcome.answers.length} answers` : ''}
        </p>
        <Problem error={error} />
        {outcome ? (
          <Results outcome={outcome} />
        ) : (
          !error && <p class="empty">Press “Ask”: the context is read once, for all tasks.</p>
        )}
        <RequestView path={path} body={bodyOf(shown)} />
      </div>
    </form>
  );
}

/** Name of the session storage item with the draft. Only this browser tab can read it. */
const DRAFT = 'assay-draft';

/** Returns the draft that was stored before the page was reloaded; undefined if there is none or it cannot be read. */
function storedDraft(): Draft | undefined {
  const read = v.safeParse(v.pipe(v.string(), v.parseJson(), StoredDraft), sessionStorage.getItem(DRAFT));
  return read.success ? { ...read.output, tasks: read.output.tasks.map(newTask) } : undefined;
}

/** Stores a draft in session storage, without its image or recording, which can be larger than the storage. */
function storeDraft({ context, tasks, maxOutputTokens }: Draft): void {
  try {
    sessionStorage.setItem(DRAFT, JSON.stringify({ context, tasks, maxOutputTokens } satisfies StoredDraft));
  } catch {
    // The text is too long for the storage. A reload then shows the first example.
    sessionStorage.removeItem(DRAFT);
  }
}
