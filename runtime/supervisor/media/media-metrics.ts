import { Counter, type Registry } from 'prom-client';
import type { MediaKind } from '../../../lib/contract/conversation.ts';
import type { MediaFigures } from '../../protocol/messages.ts';
import type { MediaCounts } from './open-media.ts';

/**
 * Counts images or recordings: how many were opened and decoded, the requests refused because of one, and (`encoded`)
 * how many features came from the encoder or its cache, and the time of the encoder.
 */
export type MediaMetrics = MediaCounts & { encoded(figures: MediaFigures): void };

/** Metric names and words of the help texts, for each kind of media. */
const WORDS = {
  image: { all: 'assay_images', one: 'assay_image', many: 'Images', single: 'an image', decoded: 'whose pixels were' },
  audio: { all: 'assay_audio', one: 'assay_audio', many: 'Recordings', single: 'a recording', decoded: 'that were' },
} as const;

/** Creates the counters for one kind of media, and returns the functions that increment them. */
export function addMediaCounters(kind: MediaKind, registers: Registry[]): MediaMetrics {
  const { all, one, many, single, decoded: prepared } = WORDS[kind];
  const counter = <L extends string = never>(name: string, help: string, labelNames: L[] = []) =>
    new Counter<L>({ name, help, labelNames, registers });
  const opened = counter(`${all}_total`, `${many} of requests that were opened.`);
  const decoded = counter(`${all}_decoded_total`, `${many} ${prepared} decoded for the encoder.`);
  const refused = counter(`${all}_refused_total`, `Requests refused because of ${single}, by reason.`, ['reason']);
  const features = counter(`${one}_features_total`, `${many} of answered requests by where their features came from.`, [
    'source',
  ]);
  const encoding = counter(`${one}_encoder_seconds_total`, `Time of the ${kind} encoder.`);
  return {
    opened: () => opened.inc(),
    decoded: () => decoded.inc(),
    refused: (reason) => refused.inc({ reason }),
    encoded({ encoded, cached, encodeMs }) {
      features.inc({ source: 'encoder' }, encoded);
      features.inc({ source: 'cache' }, cached);
      encoding.inc(encodeMs / 1000);
    },
  };
}
