import type { Logger } from 'pino';
import type { Tracing } from './tracing.ts';

/**
 * Opens tracing if the environment names a collector; otherwise returns null. Imports OpenTelemetry's packages only
 * when they are needed, because they would delay every start.
 */
export async function openTracing(env: NodeJS.ProcessEnv, log: Logger): Promise<Tracing | null> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: tracesEndpoint } = env;
  if ((!endpoint && !tracesEndpoint) || env.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return null;
  const { exportTraces } = await import('./export-traces.ts');
  return exportTraces(env, log);
}
