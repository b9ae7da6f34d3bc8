import { useCallback, useEffect, useState } from 'preact/hooks';
import type { DownloadProgress } from '../../../lib/schema/model-operations.ts';
import { call } from '../api.ts';
import { Problem } from '../problem.tsx';
import { pull } from './pull.ts';

interface Listed {
  id: string;
  status: string;
}

/** Lists the models on this machine, with actions to pull, load, unload and delete them. */
export function ModelsTab({ shown, onChange }: { shown: boolean; onChange(): void }) {
  const [models, setModels] = useState<Listed[]>([]);
  const [wanted, setWanted] = useState('');
  const [progress, setProgress] = useState<DownloadProgress | null>(null);
  const [busy, setBusy] = useState('');
  const [error, setError] = useState<unknown>(null);

  const list = useCallback(async () => {
    const { data } = await (await call('/v1/models')).json();
    setModels(data);
  }, []);
  useEffect(() => {
    if (shown) list().catch(setError);
  }, [shown, list]);

  /**
   * Runs an operation, while the other actions are disabled, and shows its error. Then updates the list and the status.
   */
  const run = async (what: string, work: () => Promise<unknown>) => {
    setBusy(what);
    setError(null);
    try {
      await work();
    } catch (cause) {
      setError(cause);
    }
    setBusy('');
    setProgress(null);
    onChange();
    await list().catch(setError);
  };

  return (
    <div class="models">
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          const model = wanted.trim();
          if (model !== '') void run(`Pulling ${model}`, () => pull(model, setProgress));
        }}
      >
        <label for="pull" class="grow">
          Pull a model from the hub
          <input
            id="pull"
            value={wanted}
            spellcheck={false}
            placeholder="onnx-community/Qwen3-0.6B-ONNX"
            onInput={(event) => setWanted(event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="primary" disabled={busy !== ''}>
          Pull
        </button>
      </form>
      <div aria-live="polite">
        {busy && <p class="note">{busy}…</p>}
        {progress && <Progress progress={progress} />}
      </div>
      <Problem error={error} />
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
          {models.map(({ id, status }) => (
            <tr>
              <td>{id}</td>
              <td>
                <span class={`badge ${status}`}>{status}</span>
              </td>
              <td>
                <div class="tools">
                  {status === 'active' ? (
                    <button
                      type="button"
                      aria-label={`Unload ${id}`}
                      disabled={busy !== ''}
                      onClick={() => run(`Unloading ${id}`, () => call('/unload', { method: 'POST' }))}
                    >
                      Unload
                    </button>
                  ) : (
                    <button
                      type="button"
                      aria-label={`Load ${id}`}
                      disabled={busy !== ''}
                      onClick={() => run(`Loading ${id}`, () => call('/load', { body: { model: id } }))}
                    >
                      Load
                    </button>
                  )}
                  <button
                    type="button"
                    aria-label={`Delete ${id}`}
                    disabled={busy !== '' || status === 'active'}
                    onClick={() => {
                      if (confirm(`Delete ${id} with its weights?`)) {
                        void run(`Deleting ${id}`, () => call('/delete', { body: { model: id } }));
                      }
                    }}
                  >
                    Delete
                  </button>
                </div>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Progress({ progress: { status, bytes, total, file, step } }: { progress: DownloadProgress }) {
  const mebibytes = (count: number) => (count / 2 ** 20).toFixed(1);
  const detail = file ?? step ?? '';
  return (
    <p class="progress">
      <label for="pull-progress">
        {status} {detail} {mebibytes(bytes)}
        {total === null ? '' : ` of ${mebibytes(total)}`} MiB
      </label>
      {total === null ? <progress id="pull-progress" /> : <progress id="pull-progress" value={bytes} max={total} />}
    </p>
  );
}
