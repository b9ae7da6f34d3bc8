import * as v from 'valibot';
import type { ListedModel } from '../../../lib/backend.ts';
import type { ModelId } from '../../../lib/model-id.ts';
import { MODEL_STATUSES, ModelCapabilities, ModelContract, ModelStatus } from '../../../lib/schema/model-list.ts';
import type { Upstream } from '../upstreams/upstream.ts';

interface KnownUpstream {
  upstream: Upstream;
  active: string | null | undefined;
}

/** Describes the members of an upstream's model list that the edge reads. Older servers do not send `created`. */
export const UpstreamModels = v.object({
  data: v.array(
    v.object({
      id: v.string(),
      status: ModelStatus,
      created: v.exactOptional(v.number()),
      capabilities: v.exactOptional(ModelCapabilities),
      contract: v.exactOptional(ModelContract),
    }),
  ),
});

/**
 * Returns the edge's model list: of the models that upstreams listed, those that some upstream is configured for, each
 * with the best status (`MODEL_STATUSES` is sorted from best to worst) and the earliest `created`. A model that an
 * upstream's health reports as loaded is `active`, even if no upstream listed it.
 */
export function mergeModels(upstreams: readonly KnownUpstream[], listed: readonly ListedModel[]): ListedModel[] {
  const best = new Map<ModelId, ListedModel>();
  const served = new Set(upstreams.flatMap(({ upstream }) => upstream.models));
  const active = upstreams.flatMap(({ upstream, active }) => upstream.models.filter((model) => model === active));
  const all: ListedModel[] = [...listed, ...active.map((id) => ({ id, status: 'active' as const }))];
  for (const model of all) {
    if (served.has(model.id)) best.set(model.id, merged(best.get(model.id) ?? model, model));
  }
  return [...best.values()];
}

/**
 * Merges two entries of one model: returns the better status, the earlier `created`, and what either says of the model.
 */
function merged(one: ListedModel, other: ListedModel): ListedModel {
  const { id, status, created = one.created, capabilities = one.capabilities, contract = one.contract } = other;
  return {
    id,
    ...(capabilities ? { capabilities } : {}),
    ...(contract ? { contract } : {}),
    status: rank(status) < rank(one.status) ? status : one.status,
    ...(created === undefined ? {} : { created: Math.min(created, one.created ?? created) }),
  };
}

function rank(status: ModelStatus): number {
  return MODEL_STATUSES.indexOf(status);
}
