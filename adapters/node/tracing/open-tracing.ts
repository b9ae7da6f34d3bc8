import type { Logger } from 'pino';
import { UsageError } from '../usage-error.ts';
import type { Tracing } from './export-traces.ts';

/**
 * Opens tracing if `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` names a collector. Returns
 * null if neither does, or if `OTEL_SDK_DISABLED` is true. Imports OpenTelemetry's packages only when they are needed,
 * because they would delay every start. Throws `UsageError` if one of these addresses is not an HTTP URL, or if the
 * sampler is invalid (`samplerOf`).
 */
export async function openTracing(env: NodeJS.ProcessEnv, log: Logger): Promise<Tracing | null> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: tracesEndpoint } = env;
  if ((!endpoint && !tracesEndpoint) || env.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return null;
  for (const name of ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']) {
    // The exporter would send the traces to its default address instead.
    if (env[name] && !/^https?:$/.test(URL.parse(env[name])?.protocol ?? ''))
      throw new UsageError(`${name} must be an address, such as http://127.0.0.1:4318.`);
  }
  const { exportTraces } = await import('./export-traces.ts');
  return exportTraces(env, log);
}
