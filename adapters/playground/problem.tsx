import { ApiError } from './api.ts';

/** Shows an error and what the user can do about it. */
export function Problem({ error }: { error: unknown }) {
  if (error === null || error === undefined) return null;
  const { message, code, param, hint } = described(error);
  return (
    <div class="problem" role="alert">
      <strong>{message}</strong>
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
      {hint && <p>{hint}</p>}
    </div>
  );
}

function described(error: unknown): { message: string; code?: string; param?: string | undefined; hint?: string } {
  if (!(error instanceof ApiError)) return { message: error instanceof Error ? error.message : String(error) };
  const hint =
    error.status === 401
      ? 'Paste your key into “API key” above. The first start shows one; “assay keys add NAME” makes another.'
      : undefined;
  return { message: error.message, code: error.code, param: error.param, ...(hint ? { hint } : {}) };
}
