import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace';
import { UsageError } from '../usage-error.ts';

const PARENT_BASED = 'parentbased_';

/**
 * Returns the sampler that `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG` specify (OpenTelemetry's environment
 * variables), by default `parentbased_always_on`. Throws `UsageError` for an unknown sampler, and for a ratio that is
 * not from 0 to 1.
 */
export function samplerOf(env: NodeJS.ProcessEnv): Sampler {
  const name = env.OTEL_TRACES_SAMPLER || 'parentbased_always_on';
  if (!name.startsWith(PARENT_BASED)) return rootSampler(name, env.OTEL_TRACES_SAMPLER_ARG);
  return new ParentBasedSampler({ root: rootSampler(name.slice(PARENT_BASED.length), env.OTEL_TRACES_SAMPLER_ARG) });
}

function rootSampler(name: string, argument: string | undefined): Sampler {
  switch (name) {
    case 'always_on':
      return new AlwaysOnSampler();
    case 'always_off':
      return new AlwaysOffSampler();
    case 'traceidratio':
      return new TraceIdRatioBasedSampler(ratioOf(argument));
    default:
      throw new UsageError(
        'OTEL_TRACES_SAMPLER must be always_on, always_off or traceidratio, or one of these after parentbased_.',
      );
  }
}

function ratioOf(argument: string | undefined): number {
  const ratio = argument === undefined || argument === '' ? 1 : Number(argument);
  if (ratio >= 0 && ratio <= 1) return ratio;
  throw new UsageError('OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, such as 0.1.');
}
