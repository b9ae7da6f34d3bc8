import * as v from 'valibot';
import { object } from '../validation/objects.ts';
import { type Finding, rule, unsupported } from '../validation/rules.ts';
import { jsonObject } from './json-object.ts';
import { described, nullish } from './values.ts';

/*
 * Fields with which clients of other servers switch a model's reasoning on or off, in chats and in Responses. All mean
 * the same: whether the model may reason. Levels of effort go to chat templates that have them (docs/model-api.md,
 * M-15).
 */

export const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;
export type Effort = (typeof EFFORTS)[number];
const effort = v.nullish(v.picklist(EFFORTS));

/** Variables of chat templates that requests may set, each with the values that it may have. */
const TEMPLATE_VARIABLES: { readonly [name: string]: (value: unknown) => boolean } = {
  enable_thinking: (value) => typeof value === 'boolean',
  thinking: (value) => typeof value === 'boolean',
  reasoning_effort: isEffort,
};

// `some` compares only.
function isEffort(value: unknown): value is Effort {
  return EFFORTS.some((one) => one === value);
}

const templateVariables = rule<{ readonly [name: string]: unknown }>((values) => {
  for (const [name, value] of Object.entries(values)) {
    const allows = Object.hasOwn(TEMPLATE_VARIABLES, name) ? TEMPLATE_VARIABLES[name] : undefined;
    if (!allows) {
      const names = Object.keys(TEMPLATE_VARIABLES).join(', ');
      return { code: 'unsupported_parameter', at: [name], message: `is not supported: set one of ${names}` };
    }
    if (value !== null && !allows(value)) return { code: 'invalid_value', at: [name], message: 'has no such value' };
  }
  return null;
});

/** Bounds on the tokens of the reasoning: only none at all can be enforced, as no reasoning. */
const budget = unsupported(
  (value) => value === 0 || value === -1,
  'must be 0 (no reasoning), -1 (no limit) or absent: reasoning is bounded by the output limit alone',
);

export const reasoningFields = {
  chat_template_kwargs: nullish(
    v.pipe(jsonObject, templateVariables),
    'As vLLM has it. enable_thinking or thinking (false: the model does not reason) and reasoning_effort.',
  ),
  enable_thinking: described(v.nullish(v.boolean()), 'False: the model does not reason.'),
  think: described(
    v.nullish(v.union([v.boolean(), v.picklist(EFFORTS)])),
    'As Ollama has it. False: the model does not reason.',
  ),
  thinking: v.nullish(
    object({
      type: described(v.picklist(['enabled', 'disabled', 'adaptive', 'auto']), 'disabled: the model does not reason.'),
      budget_tokens: budget,
    }),
  ),
  reasoning_effort: described(
    effort,
    'none: the model does not reason. Other levels have an effect where the chat template has levels.',
  ),
  reasoning: v.nullish(
    object({
      effort,
      enabled: described(v.nullish(v.boolean()), 'False: the model does not reason.'),
      max_tokens: budget,
      exclude: unsupported((value) => value === false, 'is not supported: leave the reasoning in the answer unread'),
    }),
  ),
  reasoning_budget: budget,
  thinking_budget: budget,
};

type Sent = { [name in keyof typeof reasoningFields]?: v.InferOutput<(typeof reasoningFields)[name]> };

/** Describes whether a model may reason before its answer, and how much. */
export interface Reasoning {
  /** False: it must not; true: it may, even if its chat template needs to be told so. */
  enabled: boolean;
  /** Level of effort for a chat template that has levels. */
  effort?: Effort;
}

/** Returns what each field says about the reasoning, by its path; fields that say nothing are omitted. */
function said(sent: Sent): [path: string[], says: Reasoning][] {
  const flag = (value: unknown): Reasoning | null => (typeof value === 'boolean' ? { enabled: value } : null);
  const level = (value: unknown): Reasoning | null =>
    isEffort(value) ? { enabled: value !== 'none', effort: value } : null;
  const none = (value: unknown): Reasoning | null => (value === 0 ? { enabled: false } : null);
  const { think, thinking, reasoning, chat_template_kwargs: variables } = sent;
  const all: [string[], Reasoning | null][] = [
    [['chat_template_kwargs', 'enable_thinking'], flag(variables?.enable_thinking)],
    [['chat_template_kwargs', 'thinking'], flag(variables?.thinking)],
    [['chat_template_kwargs', 'reasoning_effort'], level(variables?.reasoning_effort)],
    [['enable_thinking'], flag(sent.enable_thinking)],
    [['think'], typeof think === 'string' ? level(think) : flag(think)],
    [['thinking', 'type'], thinking ? { enabled: thinking.type !== 'disabled' } : null],
    [['thinking', 'budget_tokens'], none(thinking?.budget_tokens)],
    [['reasoning_effort'], level(sent.reasoning_effort)],
    [['reasoning', 'effort'], level(reasoning?.effort)],
    [['reasoning', 'enabled'], flag(reasoning?.enabled)],
    [['reasoning', 'max_tokens'], none(reasoning?.max_tokens)],
    [['reasoning_budget'], none(sent.reasoning_budget)],
    [['thinking_budget'], none(sent.thinking_budget)],
  ];
  return all.flatMap(([path, says]) => (says ? [[path, says]] : []));
}

/** Returns the issue of two fields that contradict each other about the reasoning; null if there is none. */
export function contradictingReasoning(sent: Sent): Finding | null {
  const [first, ...rest] = said(sent);
  const other = rest.find(([, { enabled }]) => enabled !== first?.[1].enabled);
  if (!first || !other) return null;
  return { code: 'invalid_value', at: other[0], message: `contradicts ${first[0].join('.')} about the reasoning` };
}

/** Returns what a request says about the reasoning; null if it leaves that to the model. */
export function reasoningOf(sent: Sent): Reasoning | null {
  const all = said(sent).map(([, says]) => says);
  const [first] = all;
  if (!first) return null;
  const effort = all.find((one) => one.effort !== undefined)?.effort;
  return { enabled: first.enabled, ...(effort === undefined ? {} : { effort }) };
}
