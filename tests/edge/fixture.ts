import { afterAll, beforeAll } from 'vitest';
import { type EdgeOptions, startEdge, type TestEdge } from './edge.ts';
import { startUpstream, type TestUpstream } from './upstream.ts';
import { bundle } from './workerd.ts';

export interface Fixture {
  edge: TestEdge;
  upstreams: TestUpstream[];
  /** Returns the upstream that was asked since `play`, judged by its recording. */
  asked(): TestUpstream[];
}

/** Three upstreams and an edge before them, for the tests of one `describe`. */
export function withEdge(options: EdgeOptions = {}): Fixture {
  const fixture = {} as Fixture;
  beforeAll(async () => {
    fixture.upstreams = await Promise.all(['npu-1', 'npu-2', 'npu-3'].map((name) => startUpstream(name)));
    fixture.asked = () => fixture.upstreams.filter(({ recorded }) => recorded.length > 0);
    fixture.edge = await startEdge(await bundled(), fixture.upstreams, options);
  }, 60_000);
  afterAll(async () => {
    await fixture.edge?.close();
    await Promise.all(fixture.upstreams?.map((upstream) => upstream.kill()) ?? []);
  });
  return fixture;
}

let bundling: Promise<string> | undefined;
function bundled(): Promise<string> {
  bundling ??= bundle();
  return bundling;
}
