import { describe, expect, it } from 'vitest';
import { encoderFiles, findEncoderContract, rowTokens } from './encoder-contracts.ts';

const find = (json: Record<string, unknown>, ...paths: string[]) =>
  findEncoderContract({ paths: new Set([...Object.keys(json), ...paths]), json });

const LAYA = { max_len: 160, head_max_len: 96, temperature: [1, 2, 3], temperature_by_options: { 'choice:2': 0.1 } };
const entails = (id2label: Record<string, string>, more: object = {}) => ({
  'config.json': {
    architectures: ['DebertaV2ForSequenceClassification'],
    id2label,
    max_position_embeddings: 512,
    ...more,
  },
});

const gliclass = (more: object) => ({
  'config.json': { architectures: ['GLiClassModel'], encoder_config: { model_type: 'modernbert' }, ...more },
});

describe('the contract of an encoder model', () => {
  it.each<[string, Parameters<typeof find>, object]>([
    ['Laya in its own file', [{ 'rl_agent_config.json': LAYA }], { name: 'laya', maxTokens: 160, headTokens: 96 }],
    ['Laya in config.json', [{ 'config.json': { laya: LAYA } }], { name: 'laya', temperature: [1, 2, 3] }],
    [
      'jevhome',
      [{ 'decision_config.json': { head: 'h2' }, 'calibration_u.json': { 'choice:2': { T: 1.5, n: 9 } } }],
      { name: 'jevhome', temperatureByOptions: { 'choice:2': 1.5 } },
    ],
    [
      'OpenDecider',
      [{ 'opendecider.json': { special_ids: { cls: 1, sep: 2, mask: 3 }, max_len: 256 } }],
      { name: 'opendecider', special: { cls: 1, sep: 2, mask: 3 } },
    ],
    [
      'Open-Decision',
      [{ 'open_decision.json': { format_version: 1, max_length: 128 } }],
      { name: 'open-decision', maxTokens: 128 },
    ],
    [
      'Verdict',
      [{ 'calibrator.json': { temperature: 1.4, per_k: { 3: 2 } }, ...gliclass({}) }],
      { name: 'verdict', temperatureByLabels: { 3: 2 }, checkpoint: true },
    ],
    ['GLiClass', [gliclass({})], { name: 'gliclass', maxTokens: 1024, checkpoint: true }],
    ['GLiClass with another head', [gliclass({ normalize_features: true })], { name: 'gliclass', checkpoint: false }],
    ['GLiClass on another encoder', [gliclass({ encoder_config: {} })], { name: 'gliclass', checkpoint: false }],
    [
      'open-jev',
      [{ 'config.json': { open_jev: { max_len: 240 } } }],
      { name: 'open-jev', maxTokens: 240, temperature: 1.05 },
    ],
    [
      'GLiNER2',
      [{ 'config.json': { architecture: 'span', max_width: 5 } }],
      { name: 'gliner2', maxWidth: 5, maxTokens: 512 },
    ],
    ['two classes', [entails({ 0: 'entailment', 1: 'not_entailment' })], { name: 'nli', entailment: 0, against: 1 }],
    [
      'three classes, and the limit of the tokenizer',
      [
        {
          ...entails({ 0: 'CONTRADICTION', 1: 'neutral', 2: 'ENTAILMENT' }),
          'tokenizer_config.json': { model_max_length: 128 },
        },
      ],
      { name: 'nli', entailment: 2, against: 0, maxTokens: 128, hypothesis: 'answer' },
    ],
    [
      'ModernBERT',
      [entails({ 0: 'entailment', 1: 'not_entailment' }, { model_type: 'modernbert' })],
      { hypothesis: 'plain' },
    ],
    [
      'Julia',
      [{ 'config.json': { model_type: 'modernbert' }, 'tokenizer_config.json': { mask_token: '<mask>' } }],
      { name: 'julia' },
    ],
    [
      'DecisionTune',
      [
        {
          'config.json': {
            model_type: 'modernbert',
            max_position_embeddings: 8192,
            architectures: ['ModernBertModel'],
          },
        },
        'head.safetensors',
      ],
      { name: 'decision-tune', maxTokens: 8192 },
    ],
  ])('%s', (_, files, contract) => {
    const found = find(...files);
    expect(found).toMatchObject(contract);
    expect(rowTokens(found!)).toBeGreaterThan(0);
  });

  it.each<[string, Record<string, unknown>]>([
    ['a language model', { 'config.json': { architectures: ['LlamaForCausalLM'], model_type: 'llama' } }],
    ['a classifier of sentiments', entails({ 0: 'positive', 1: 'negative' })],
    ['a bare encoder', { 'config.json': { architectures: ['ModernBertModel'], model_type: 'modernbert' } }],
    [
      'a masked language model',
      { 'config.json': { architectures: ['ModernBertForMaskedLM'], model_type: 'modernbert' } },
    ],
    ['nothing', {}],
  ])('%s has none', (_, json) => expect(find(json)).toBeNull());

  it.each<[string, Record<string, unknown>, string]>([
    ['an unknown key', { 'rl_agent_config.json': { ...LAYA, cross_attention: true } }, 'cross_attention'],
    ['options in parallel', { 'rl_agent_config.json': { ...LAYA, option_layout: 'parallel' } }, 'option_layout'],
    [
      'shared positions',
      { 'decision_config.json': { order_invariant: true }, 'calibration_u.json': {} },
      'order_invariant',
    ],
    ['another format', { 'open_decision.json': { format_version: 2 } }, 'format_version'],
    [
      'a bi-encoder',
      { 'config.json': { architectures: ['GLiClassModel'], architecture_type: 'bi-encoder' } },
      'bi-encoder',
    ],
    ['other pooling', { 'config.json': { architecture: 'span', token_pooling: 'mean' } }, 'token_pooling'],
    ['five classes', entails({ 0: 'entailment', 1: 'a', 2: 'b', 3: 'c', 4: 'contradiction' }), 'labels'],
    ['a temperature of 0', { 'calibrator.json': { temperature: 0 } }, 'temperature'],
  ])('refuses %s by name', (_, json, named) => expect(() => find(json)).toThrow(named));

  it('finds files in the folders in which authors keep them', () => {
    const paths = [
      'encoder/config.json',
      'tokenizer/tokenizer_config.json',
      'encoder_config/config.json',
      'a/opendecider.json',
    ];
    expect(encoderFiles(new Set(paths))).toEqual({
      'config.json': 'encoder/config.json',
      'tokenizer_config.json': 'tokenizer/tokenizer_config.json',
      'encoder_config.json': 'encoder_config/config.json',
    });
  });
});
