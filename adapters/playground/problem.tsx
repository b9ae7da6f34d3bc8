import { useEffect, useRef } from 'preact/hooks';
import { ApiError } from './api.ts';

/** Shows an error and what the user can do about it; nothing if `error` is null or undefined. */
export function Problem({ error }: { error: unknown }) {
  const element = useRef<HTMLDivElement>(null);
  // On a narrow screen, the error may be below what the user sees.
  useEffect(() => element.current?.scrollIntoView({ block: 'nearest' }), [error]);
  if (error === null || error === undefined) return null;
  const { message, code, param, hint } = described(error);
  return (
    <div class="problem" role="alert" ref={element}>
      <strong>{message}</strong>
      {hint && <p>{hint}</p>}
      {code && (
        <p>
          <code>{code}</code>
          {param && (
            <>
              {' at '}
              <code>{param}</code>
            </>
          )}
        </p>
      )}
    </div>
  );
}

/** Actions on this page for some error codes, whose messages are written for programs. */
const HINTS: Readonly<Record<string, string>> = {
  missing_api_key: 'The first start of the server shows a key; “assay keys add NAME” makes another.',
  invalid_api_key: 'Paste your key into “API key” above.',
  model_not_loaded: 'Load a model in the tab “Models”.',
};

function described(error: unknown): { message: string; code?: string; param?: string | undefined; hint?: string } {
  if (!(error instanceof ApiError)) return { message: error instanceof Error ? error.message : String(error) };
  const { code, param } = error;
  const message = code === 'missing_api_key' ? 'Paste your key into “API key” above.' : error.message;
  const hint = HINTS[code];
  return { message, code, param, ...(hint ? { hint } : {}) };
}
