import { useEffect, useState } from 'preact/hooks';
import { DownloadSpeed, describeProgress, STAGE_LABELS } from '../../../lib/models/describe-progress.ts';
import type { Model, ModelList, ModelStatus } from '../../../lib/schema/model-list.ts';
import type { DownloadProgress, DownloadResponse, LoadResponse } from '../../../lib/schema/model-operations.ts';
import { ApiError, call, poll } from '../api.ts';
import { Problem } from '../problem.tsx';
import { readEvents } from '../read-events.ts';
import type { Status } from '../status.ts';

interface Props {
  shown: boolean;
  status: Status;
  onChange(): void;
}

/** The part of the response to a load or a pull that the tab shows. */
type Report = Pick<LoadResponse, 'precision_warning'>;

/** Lists the models on this machine, with actions to pull, load, unload and delete them. */
export function ModelsTab({ shown, status, onChange }: Props) {
  const [models, setModels] = useState<readonly Model[]>([]);
  const [listError, setListError] = useState<unknown>(null);
  const [busy, setBusy] = useState('');
  const [notice, setNotice] = useState('');
  const [error, setError] = useState<unknown>(null);

  // Every status is a new object, so the list is as fresh as the status; what other tabs and programs do shows, too.
  useEffect(() => {
    if (!shown || status.reachable === null) return;
    poll('/v1/models')
      .then((response) => response.json())
      .then(({ data }: ModelList) => {
        setModels(data);
        setListError(null);
      })
      .catch(setListError);
  }, [shown, status]);

  /** Shows how `work` ends: the text `done` with the warning of the server, if there is one, or the error. */
  const finish = async (work: Promise<Report | undefined>, done: string) => {
    setError(null);
    setNotice('');
    try {
      const { precision_warning: warning } = (await work) ?? {};
      setNotice(warning ? `${done} ${warning}` : done);
    } catch (cause) {
      setError(cause);
    }
    onChange();
  };
  /** Shows the text `doing` and disables the buttons of the table until `work` ends, then shows its end (`finish`). */
  const run = async (doing: string, work: Promise<Response>, done: string) => {
    setBusy(doing);
    await finish(
      work.then((response) => response.json()),
      done,
    );
    setBusy('');
  };

  return (
    <div class="models">
      <PullForm onPull={(model, pulled) => finish(pulled, `${model} is on this machine. Load it to ask it.`)} />
      <p role="status" class={busy || notice ? 'note' : 'visually-hidden'}>
        {busy || notice}
      </p>
      <Problem error={error} />
      <Problem error={listError} />
      {models.length > 0 && (
        <ModelTable
          models={models}
          busy={busy !== ''}
          onLoad={(model) => run(`Loading ${model}…`, call('/load', { body: { model } }), `${model} is loaded.`)}
          onUnload={(model) => run(`Unloading ${model}…`, call('/unload', { method: 'POST' }), `${model} is unloaded.`)}
          onDelete={(model) => {
            if (!confirm(`Delete ${model} with its weights?`)) return;
            void run(`Deleting ${model}…`, call('/delete', { body: { model } }), `${model} is deleted.`);
          }}
        />
      )}
    </div>
  );
}

interface PullProps {
  /** Called when a pull begins; `pulled` resolves when it ends. The form waits for the returned promise. */
  onPull(model: string, pulled: Promise<DownloadResponse>): Promise<void>;
}

interface Pulling {
  model: string;
  /** Last progress that the server has reported; null if none. */
  progress: DownloadProgress | null;
  bytesPerSecond: number | null;
}

/** Lets the user pull a model, and shows its progress. */
function PullForm({ onPull }: PullProps) {
  const [wanted, setWanted] = useState('');
  const [pulling, setPulling] = useState<Pulling | null>(null);

  const start = async () => {
    const model = wanted.trim();
    const speed = new DownloadSpeed();
    setPulling({ model, progress: null, bytesPerSecond: null });
    await onPull(
      model,
      pull(model, (progress) => {
        setPulling({ model, progress, bytesPerSecond: speed.add(performance.now(), progress) });
      }),
    );
    setPulling(null);
  };

  return (
    <>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          if (!pulling) void start();
        }}
      >
        <label for="pull" class="grow">
          Pull a model from the hub
          <input
            id="pull"
            value={wanted}
            required
            spellcheck={false}
            autocapitalize="off"
            placeholder="onnx-community/Qwen3-0.6B-ONNX"
            onInput={(event) => setWanted(event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="primary" disabled={pulling !== null}>
          Pull
        </button>
      </form>
      {pulling && <Progress {...pulling} />}
    </>
  );
}

function Progress({ model, progress, bytesPerSecond }: Pulling) {
  const total = progress?.total;
  const words = progress ? describeProgress(progress, bytesPerSecond) : '';
  return (
    <div class="progress">
      <label for="pull-progress">
        <strong>
          {progress ? STAGE_LABELS[progress.status] : 'Asking for'} {model}
        </strong>
        <span>{words}</span>
      </label>
      {total ? <progress id="pull-progress" value={progress.bytes} max={total} /> : <progress id="pull-progress" />}
    </div>
  );
}

/**
 * Lets the server download and compile a model, and calls `onProgress` with each report. Returns the final report.
 * Throws `ApiError` if the server refuses or fails, or if the reports end early. The server continues if the page is
 * closed.
 */
async function pull(model: string, onProgress: (progress: DownloadProgress) => void): Promise<DownloadResponse> {
  const body = { model, allow_download: true };
  const response = await call('/v1/models/download', { body, accept: 'text/event-stream' });
  let finished: DownloadResponse | undefined;
  await readEvents(response, (data) => {
    const event: DownloadProgress | DownloadResponse = JSON.parse(data);
    if (event.status === 'success') finished = event;
    else onProgress(event);
  });
  if (finished) return finished;
  const message = 'The server stopped reporting. Pull the model again: what it has downloaded is kept.';
  throw new ApiError(0, 'stream_ended', message);
}

interface TableProps {
  models: readonly Model[];
  /** True while an operation runs, and no other can be started. */
  busy: boolean;
  onLoad(id: string): void;
  onUnload(id: string): void;
  onDelete(id: string): void;
}

/** Statuses of a model that is not loaded and with which the server does nothing. */
const IDLE: readonly ModelStatus[] = ['compiled', 'downloaded', 'available', 'error'];

/** Shows the models of the machine, with their actions. */
function ModelTable({ models, busy, onLoad, onUnload, onDelete }: TableProps) {
  return (
    <table>
      <caption>Models of this machine</caption>
      <thead>
        <tr>
          <th scope="col">Model</th>
          <th scope="col">Status</th>
          <th scope="col">Actions</th>
        </tr>
      </thead>
      <tbody>
        {models.map(({ id, status }) => {
          const idle = IDLE.includes(status) && !busy;
          return (
            <tr key={id}>
              <td class="id">{id}</td>
              <td>
                <span class={`badge ${status}`}>{status}</span>
              </td>
              <td>
                <div class="tools">
                  {status === 'active' ? (
                    <button type="button" aria-label={`Unload ${id}`} disabled={busy} onClick={() => onUnload(id)}>
                      Unload
                    </button>
                  ) : (
                    <button type="button" aria-label={`Load ${id}`} disabled={!idle} onClick={() => onLoad(id)}>
                      Load
                    </button>
                  )}
                  <button type="button" aria-label={`Delete ${id}`} disabled={!idle} onClick={() => onDelete(id)}>
                    Delete
                  </button>
                </div>
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
