import { afterAll, beforeAll } from 'vitest';
import { startBox, type TestBox } from './box.ts';
import { type EdgeOptions, startEdge, type TestEdge } from './edge.ts';
import { bundle } from './workerd.ts';

export interface Fixture {
  edge: TestEdge;
  boxes: TestBox[];
  /** The box that was asked since `play`, by what it recorded. */
  asked(): TestBox[];
}

/** Three boxes and an edge before them, for the tests of one `describe`. */
export function withEdge(options: EdgeOptions = {}): Fixture {
  const fixture = {} as Fixture;
  beforeAll(async () => {
    fixture.boxes = await Promise.all(['npu-1', 'npu-2', 'npu-3'].map((name) => startBox(name)));
    fixture.asked = () => fixture.boxes.filter(({ recorded }) => recorded.length > 0);
    fixture.edge = await startEdge(await bundled(), fixture.boxes, options);
  }, 60_000);
  afterAll(async () => {
    await fixture.edge?.close();
    await Promise.all(fixture.boxes?.map((box) => box.kill()) ?? []);
  });
  return fixture;
}

let bundling: Promise<string> | undefined;
function bundled(): Promise<string> {
  bundling ??= bundle();
  return bundling;
}
