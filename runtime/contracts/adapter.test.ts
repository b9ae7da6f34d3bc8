import { describe, expect, it } from 'vitest';
import { readAdapter } from './adapter.ts';

const CONFIG = { peft_type: 'LORA', r: 4, lora_alpha: 8, target_modules: ['q_proj', 'q', 'kq_proj'], bias: 'none' };

function adapter(config: object): ReturnType<typeof readAdapter> {
  return readAdapter({ paths: new Set(), json: { 'adapter_config.json': { ...CONFIG, ...config } } });
}

describe('the configuration of an adapter', () => {
  it.each<[string, object, string, number, number]>([
    ['alpha by rank', {}, 'layers.0.self_attn.q_proj', 4, 2],
    ['the square root of the rank', { use_rslora: true }, 'layers.0.self_attn.q_proj', 4, 4],
    ['another rank of a module', { rank_pattern: { 'self_attn.q_proj': 2 } }, 'layers.0.self_attn.q_proj', 2, 4],
    ['another alpha of a module', { alpha_pattern: { 'layers\\.0\\.q': 2 } }, 'layers.0.q', 4, 0.5],
    ['a pattern for the whole name', { alpha_pattern: { '^q': 2 } }, 'layers.0.q', 4, 2],
    ['no part of a name', { alpha_pattern: { q_proj: 2 } }, 'layers.0.kq_proj', 4, 2],
  ])('scales by %s', (_, config, module, rank, scale) => {
    expect(adapter(config).scale(module, rank)).toBe(scale);
  });

  it('names its base model, and ignores keys that say nothing', () => {
    const config = {
      base_model_name_or_path: 'acme/base',
      revision: 'abc',
      use_dora: false,
      new_config: {},
      next: null,
    };
    expect(adapter(config)).toMatchObject({ base: { repository: 'acme/base', revision: 'abc' } });
  });

  it.each<[object, RegExp]>([
    [{ use_dora: true }, /the key use_dora/],
    [{ modules_to_save: ['lm_head'] }, /the key modules_to_save/],
    [{ trainable_token_indices: [1] }, /the key trainable_token_indices/],
    [{ layer_replication: [[0, 1]] }, /the key layer_replication/],
    [{ fan_in_fan_out: true }, /the key fan_in_fan_out/],
    [{ bias: 'all' }, /"all" for bias/],
    [{ init_lora_weights: 'pissa' }, /"pissa" for init_lora_weights/],
    [{ peft_type: 'LOHA' }, /"LOHA" for peft_type/],
    [{ rank_pattern: { 'layers.(0|1).q': 2 } }, /rank_pattern/],
  ])('is refused with %j', (config, message) => {
    expect(() => adapter(config)).toThrow(message);
  });

  it.each<[object, string]>([
    [{}, 'layers.0.self_attn.v_proj'],
    [{ layers_to_transform: [1, 2] }, 'model.layers.0.self_attn.q_proj'],
    [{ layers_to_transform: 1 }, 'lm_head.q_proj'],
  ])('with %j leaves out %s', (config, module) => {
    expect(() => adapter(config).scale(module, 4)).toThrow(/which adapter_config.json leaves out/);
  });

  it('is refused for a rank that it does not state', () => {
    expect(() => adapter({}).scale('layers.0.q_proj', 8)).toThrow(/rank 8 for layers.0.q_proj/);
  });
});
