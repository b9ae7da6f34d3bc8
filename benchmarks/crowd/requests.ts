import type { CrowdRequest } from '../systems/system.ts';

const CHAT = { prompt: 128, answer: 64 };
/** Describes a decide request: a text of 256 tokens and one short task. */
const DECIDE = { prompt: 280, answer: 1 };
const EXTRACT = { prompt: 280, answer: 24 };

/** Returns chats whose prompts have nothing in common. */
export function chats(count: number, seed: number): CrowdRequest[] {
  return Array.from({ length: count }, (_, i) => ({ ...CHAT, seed: seed * 1000 + i }));
}

/** Returns a mix of requests: of ten, five decide, three extract and two are chats. */
export function mixed(count: number, seed: number): CrowdRequest[] {
  const kinds = [DECIDE, EXTRACT, DECIDE, CHAT, DECIDE, EXTRACT, DECIDE, EXTRACT, DECIDE, CHAT];
  return Array.from({ length: count }, (_, i) => ({
    ...(kinds[i % kinds.length] ?? CHAT),
    seed: seed * 1000 + 500 + i,
  }));
}
