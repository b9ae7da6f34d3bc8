import type { ListedModel, ModelStatus } from '../../../lib/backend.ts';
import type { ModelId } from '../../../lib/model-id.ts';
import { MODEL_STATUSES } from '../../../lib/schema/model-list.ts';
import type { Upstream } from '../upstreams/upstream.ts';

interface KnownUpstream {
  upstream: Upstream;
  active: string | null | undefined;
}

/**
 * Merges model lists: the configured models, each with the best status that any upstream reports (`MODEL_STATUSES`
 * begins with the best); `active` also if an upstream's health says so.
 */
export function mergeModels(upstreams: readonly KnownUpstream[], heard: readonly ListedModel[]): ListedModel[] {
  const best = new Map<ModelId, ModelStatus>();
  const served = new Set(upstreams.flatMap(({ upstream }) => upstream.models));
  const active = upstreams.flatMap(({ upstream, active }) => upstream.models.filter((model) => model === active));
  const all = [...heard, ...active.map((id) => ({ id, status: 'active' as const }))];
  for (const { id, status } of all) {
    const so = best.get(id);
    if (served.has(id) && (so === undefined || rank(status) < rank(so))) best.set(id, status);
  }
  return [...best].map(([id, status]) => ({ id, status }));
}

function rank(status: ModelStatus): number {
  return MODEL_STATUSES.indexOf(status);
}
