import type { CrowdRequest } from '../systems/system.ts';

const CHAT = { prompt: 128, answer: 64 };
/** A text of 256 tokens and one short task on it. */
const DECIDE = { prompt: 280, answer: 1 };
const EXTRACT = { prompt: 280, answer: 24 };

/** Returns chats that have nothing in common. */
export function chats(count: number, seed: number): CrowdRequest[] {
  return Array.from({ length: count }, (_, i) => ({ ...CHAT, seed: seed * 1000 + i }));
}

/** Returns requests of which half decide, three in ten extract, and two in ten are chats, mixed. */
export function mixed(count: number, seed: number): CrowdRequest[] {
  const kinds = [DECIDE, EXTRACT, DECIDE, CHAT, DECIDE, EXTRACT, DECIDE, EXTRACT, DECIDE, CHAT];
  return Array.from({ length: count }, (_, i) => ({
    ...(kinds[i % kinds.length] ?? CHAT),
    seed: seed * 1000 + 500 + i,
  }));
}
