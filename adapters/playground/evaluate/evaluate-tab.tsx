import { useRef, useState } from 'preact/hooks';
import type { Coverage, Evaluation } from '../../../lib/calibration/evaluate.ts';
import { evaluate } from '../../../lib/calibration/evaluate.ts';
import { type Label, readLabels, requestOfLabels, type Sample, samplesOf } from '../../../lib/calibration/labels.ts';
import { coveragePlot, reliabilityPlot } from '../../../lib/calibration/plots.ts';
import { call } from '../api.ts';
import { Problem } from '../problem.tsx';
import { copyText } from '../tasks/request-view.tsx';

/** Most labels that the page asks about: more are for the command line. */
const MOST_LABELS = 2000;
/** Milliseconds for which the button shows that the command was copied. */
const COPIED_MS = 1_500;
const ERRORS = [0.01, 0.02, 0.05, 0.1, 0.2] as const;

/** Measures the loaded model against a file of labels, and shows which error leaves which coverage. */
export function EvaluateTab({ model }: { model: string }) {
  const [file, setFile] = useState('');
  const [progress, setProgress] = useState<{ done: number; all: number } | null>(null);
  const [evaluation, setEvaluation] = useState<Evaluation | null>(null);
  const [error, setError] = useState<unknown>(null);
  const stop = useRef<AbortController | null>(null);

  const read = async (chosen: File | undefined) => {
    if (!chosen || progress) return;
    setFile(chosen.name);
    setError(null);
    setEvaluation(null);
    stop.current = new AbortController();
    try {
      const labels = labelsIn(await chosen.text());
      setProgress({ done: 0, all: labels.length });
      const samples: Sample[] = [];
      for (const [i, label] of labels.entries()) {
        const body = { model, ...requestOfLabels([label]) };
        const response = await call(label.path, { body, signal: stop.current.signal });
        samples.push(...samplesOf([label], await response.text()));
        setProgress({ done: i + 1, all: labels.length });
      }
      setEvaluation(evaluate(samples));
    } catch (cause) {
      if (!stop.current.signal.aborted) setError(cause);
    }
    setProgress(null);
  };

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: a file may be dropped anywhere; the field does the same
    <div
      class="evaluate"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        void read(event.dataTransfer?.files[0]);
      }}
    >
      <label for="labels" class="grow">
        Labelled questions (JSONL): choose a file, or drop it here
        <input
          id="labels"
          type="file"
          accept=".jsonl,.ndjson,application/x-ndjson"
          disabled={model === '' || progress !== null}
          onChange={(event) => {
            void read(event.currentTarget.files?.[0]);
            // The same file may be chosen again, after a change.
            event.currentTarget.value = '';
          }}
        />
      </label>
      <p class="hint">
        One line for each question:{' '}
        {'{"input": "Help!", "type": "predicate", "instructions": "Urgent?", "label": true}'}
      </p>
      <p role="status" class={progress || model === '' ? 'note' : 'visually-hidden'}>
        {model === '' ? 'Load a model first.' : progress ? `${progress.done} of ${progress.all} questions…` : ''}
      </p>
      {progress && (
        <button type="button" onClick={() => stop.current?.abort()}>
          Stop
        </button>
      )}
      <Problem error={error} />
      {evaluation && <Report file={file} evaluation={evaluation} />}
    </div>
  );
}

/** Reads the lines of a file. Throws an error that names the line that is wrong. */
function labelsIn(text: string): Label[] {
  const labels = text.split('\n').flatMap((line, i) => {
    if (line.trim() === '') return [];
    try {
      return readLabels(line);
    } catch (cause) {
      throw new Error(`Line ${i + 1}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    }
  });
  if (labels.length === 0) throw new Error('The file has no labels.');
  if (labels.length <= MOST_LABELS) return labels;
  throw new Error(
    `The file has ${labels.length} labels. Evaluate more than ${MOST_LABELS} with: assay eval labels.jsonl`,
  );
}

const percent = (value: number): string => `${(100 * value).toFixed(1)}%`;

function Report({ file, evaluation }: { file: string; evaluation: Evaluation }) {
  const [target, setTarget] = useState<number>(0.05);
  const [copied, setCopied] = useState<boolean | null>(null);
  const shown = useRef<HTMLElement>(null);
  const { labels, accuracy, brier, ece, bins, coverage, questions } = evaluation;
  const chosen = widest(coverage, target);
  const command = `assay calibrate ${/^[\w.-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`} --target-error ${target}`;
  const copy = async () => {
    setCopied(await copyText(command, shown.current));
    setTimeout(() => setCopied(null), COPIED_MS);
  };
  return (
    <>
      <p class="figures" role="status">
        {labels} labels · {percent(accuracy.value)} right ({percent(accuracy.low)} to {percent(accuracy.high)}) · Brier{' '}
        {brier.value.toFixed(3)} · ECE {ece.value.toFixed(3)}
      </p>
      <div class="plots">
        <img alt="Accuracy by confidence" src={picture(reliabilityPlot([{ title: 'accuracy by confidence', bins }]))} />
        <img alt="Error by coverage" src={picture(coveragePlot(coverage, chosen?.coverage))} />
      </div>
      <label for="target" class="narrow">
        Error that is acceptable
        <select id="target" value={target} onChange={(event) => setTarget(Number(event.currentTarget.value))}>
          {ERRORS.map((error) => (
            <option value={error}>{percent(error)}</option>
          ))}
        </select>
      </label>
      <p class="threshold" role="status">
        {chosen
          ? `Of answers with a probability of at least ${chosen.threshold.toFixed(3)}, ${percent(chosen.error.value)} are wrong here (at most ${percent(chosen.error.high)}), and ${percent(chosen.coverage)} of all are such.`
          : 'No threshold has so small an error here.'}{' '}
        A guarantee needs labels that were held out:
      </p>
      <div class="row">
        <pre class="grow">
          <code ref={shown}>{command}</code>
        </pre>
        <button type="button" onClick={copy}>
          {copied === null ? 'Copy' : copied ? 'Copied' : 'Selected: press Ctrl + C'}
        </button>
      </div>
      <table>
        <caption>Questions</caption>
        <thead>
          <tr>
            <th scope="col">Question</th>
            <th scope="col">Labels</th>
            <th scope="col">Right</th>
          </tr>
        </thead>
        <tbody>
          {questions.map((question) => (
            <tr key={question.name}>
              <td>{question.name}</td>
              <td>{question.labels}</td>
              <td>{percent(question.accuracy.value)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

/** Returns the point of the largest coverage whose error is at most the target. */
function widest(points: readonly Coverage[], target: number): Coverage | undefined {
  return points.filter(({ error }) => error.value <= target).sort((a, b) => b.coverage - a.coverage)[0];
}

/** Returns an SVG image as the address of a picture. */
function picture(svg: string): string {
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}
