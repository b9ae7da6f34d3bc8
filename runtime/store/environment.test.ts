import { expect, it } from 'vitest';
import { hubEnvironment } from './environment.ts';

const of = (env: Record<string, string>) => hubEnvironment(env, () => '/home/me');

it('has the defaults of huggingface_hub', () => {
  expect(of({})).toEqual({
    hubCache: '/home/me/.cache/huggingface/hub',
    endpoint: 'https://huggingface.co',
    tokenFile: '/home/me/.cache/huggingface/token',
    token: null,
    offline: false,
  });
});

it.each([
  [{ HF_HOME: '/hf' }, { hubCache: '/hf/hub', tokenFile: '/hf/token' }],
  [{ XDG_CACHE_HOME: '/c' }, { hubCache: '/c/huggingface/hub' }],
  [
    { HF_HOME: '/hf', HF_HUB_CACHE: '/cache' },
    { hubCache: '/cache', tokenFile: '/hf/token' },
  ],
  [{ HUGGINGFACE_HUB_CACHE: '/old' }, { hubCache: '/old' }],
  [{ HF_HUB_CACHE: '/new', HUGGINGFACE_HUB_CACHE: '/old' }, { hubCache: '/new' }],
  [{ HF_HOME: '~/hf' }, { hubCache: '/home/me/hf/hub' }],
  [{ HF_HOME: '' }, { hubCache: '/home/me/.cache/huggingface/hub' }],
  [{ HF_ENDPOINT: 'http://mirror.test//' }, { endpoint: 'http://mirror.test' }],
  [{ HF_TOKEN: ' hf_x\n' }, { token: 'hf_x' }],
  [{ HF_TOKEN: '', HUGGING_FACE_HUB_TOKEN: 'old' }, { token: 'old' }],
  [{ HF_TOKEN_PATH: '/t' }, { tokenFile: '/t' }],
  [{ HF_HUB_OFFLINE: '1' }, { offline: true }],
  [{ HF_HUB_OFFLINE: 'yes' }, { offline: true }],
  [{ HF_HUB_OFFLINE: '0' }, { offline: false }],
])('%j', (env, expected) => {
  expect(of(env as Record<string, string>)).toMatchObject(expected);
});

it('an account without a home folder needs one only for paths in it', () => {
  const noHome = () => {
    throw new Error('no home');
  };
  expect(hubEnvironment({ HF_HOME: '/hf' }, noHome)).toMatchObject({ hubCache: '/hf/hub' });
  const both = { HF_HUB_CACHE: '/cache', HF_TOKEN_PATH: '/t' };
  expect(hubEnvironment(both, noHome)).toMatchObject({ hubCache: '/cache', tokenFile: '/t' });
  for (const env of [{}, { HF_HOME: '~/hf' }]) expect(() => hubEnvironment(env, noHome)).toThrow('no home');
});
