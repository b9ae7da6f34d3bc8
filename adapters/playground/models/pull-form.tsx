import { useState } from 'preact/hooks';
import { DownloadSpeed, describeProgress, STAGE_LABELS } from '../../../lib/describe-progress.ts';
import type { DownloadProgress, DownloadResponse } from '../../../lib/schema/model-operations.ts';
import { pull } from './pull.ts';

interface Props {
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
export function PullForm({ onPull }: Props) {
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
