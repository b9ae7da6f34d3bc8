import type { Model, ModelStatus } from '../../../lib/schema/model-list.ts';

interface Props {
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
export function ModelTable({ models, busy, onLoad, onUnload, onDelete }: Props) {
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
