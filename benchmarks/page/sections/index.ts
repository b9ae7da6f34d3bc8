import type { Section } from '../section.ts';
import { branches } from './branches.ts';
import { crowd } from './crowd.ts';
import { decode, drafts, encoders, engineProcess, hybrid, memory } from './engine.ts';
import { forms } from './forms.ts';
import { growth } from './growth.ts';
import { http } from './http.ts';
import { orders, quality } from './quality.ts';
import { edge, fleet, grammar, handlers } from './service.ts';
import { speed } from './speed.ts';

/** Lists the sections of benchmarks/report.md in their order. */
export const SECTIONS: readonly Section[] = [
  branches,
  hybrid,
  encoders,
  speed,
  forms,
  crowd,
  http,
  growth,
  decode,
  drafts,
  engineProcess,
  memory,
  handlers,
  grammar,
  edge,
  quality,
  orders,
  fleet,
];
