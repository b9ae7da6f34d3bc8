import { useEffect, useState } from 'preact/hooks';
import type { Model, ModelList } from '../../../lib/schema/model-list.ts';
import type { LoadResponse } from '../../../lib/schema/model-operations.ts';
import { call, poll } from '../api.ts';
import { Problem } from '../problem.tsx';
import type { Status } from '../status.ts';
import { ModelTable } from './model-table.tsx';
import { PullForm } from './pull-form.tsx';

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
