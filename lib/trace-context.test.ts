import { expect, it } from 'vitest';
import { newTrace, randomSpanId, traceContext, traceHeaders } from './trace-context.ts';

const trace = '0af7651916cd43dd8448eb211c80319c';
const span = 'b7ad6b7169203331';
const own = '00f067aa0ba902b7';
const read = (traceparent: string, tracestate?: string) =>
  traceContext(new Headers({ traceparent, ...(tracestate ? { tracestate } : {}) }), () => own);

it.each([
  [`00-${trace}-${span}-01`, { flags: '01' }],
  [`00-${trace}-${span}-00`, { flags: '00' }],
  [`cc-${trace}-${span}-01-what-comes-later`, { flags: '01' }],
])('accepts %s', (header, fields) => {
  expect(read(header)).toEqual({ traceId: trace, spanId: own, parentId: span, ...fields });
});

it.each([
  [''],
  [`00-${trace}-${span}`],
  [`ff-${trace}-${span}-01`],
  [`00-${trace}-${span}-01-more`],
  [`00-${'0'.repeat(32)}-${span}-01`],
  [`00-${trace}-${'0'.repeat(16)}-01`],
  [`00-${trace.toUpperCase()}-${span}-01`],
  [`00-${trace.slice(1)}-${span}-01`],
])('ignores %j', (header) => {
  expect(read(header)).toBeNull();
});

it('passes the trace on with its own span as the parent', () => {
  expect(traceHeaders(read(`00-${trace}-${span}-03`, 'a=1,b=2')!)).toEqual({
    traceparent: `00-${trace}-${own}-01`,
    tracestate: 'a=1,b=2',
  });
  expect(traceHeaders(read(`00-${trace}-${span}-00`, 'x'.repeat(513))!)).toEqual({
    traceparent: `00-${trace}-${own}-00`,
  });
});

it('makes span ids of 16 hex digits', () => {
  expect(randomSpanId()).toMatch(/^[0-9a-f]{16}$/);
  expect(randomSpanId()).not.toBe(randomSpanId());
});

it('begins a trace, which upstreams continue', () => {
  const begun = newTrace(randomSpanId);
  expect(begun).not.toHaveProperty('parentId');
  const { traceparent = '' } = traceHeaders(begun);
  expect(traceContext(new Headers({ traceparent }), () => own)).toEqual({
    ...begun,
    parentId: begun.spanId,
    spanId: own,
  });
});
