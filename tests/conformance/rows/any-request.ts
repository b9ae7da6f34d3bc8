import type { Row } from '../row.ts';

const loopback = { loopbackOnly: true, allowOrigins: ['http://localhost:3000'] };
const there = { path: '/nothing-here' };
const notThere = { status: 404, error: { code: 'route_not_found', type: 'not_found_error' } } as const;
const forbidden = { status: 403, error: { code: 'forbidden_origin', type: 'permission_error' }, calls: [] } as const;

/** Rules of every route of both interfaces. */
export const anyRequest: readonly Row[] = [
  {
    name: 'an unknown route is 404 and gets a request id',
    request: there,
    expect: { ...notThere, headers: { 'x-request-id': 'generated-id' } },
  },
  {
    name: 'a request id of the caller is kept',
    request: { ...there, headers: { 'x-request-id': 'my.own:id_1-2' } },
    expect: { ...notThere, headers: { 'x-request-id': 'my.own:id_1-2' } },
  },
  ...['', 'a b', 'ä', 'x'.repeat(129)].map((id) => ({
    name: `a request id that is not well formed is replaced: ${JSON.stringify(id.slice(0, 9))}`,
    request: { ...there, headers: { 'x-request-id': id } },
    expect: { ...notThere, headers: { 'x-request-id': 'generated-id' } },
  })),
  ...['localhost', 'LOCALHOST:8080', '127.0.0.1', '127.9.8.7:1', '[::1]', '[::1]:65535'].map((host) => ({
    name: `guard: Host ${host} is the loopback`,
    app: { guard: loopback },
    request: { ...there, headers: { host } },
    expect: notThere,
  })),
  ...['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example', '10.0.0.1', '[::2]', '0.0.0.0'].map(
    (host) => ({
      name: `guard: Host ${host} is foreign (DNS rebinding)`,
      app: { guard: loopback },
      request: { ...there, headers: { host } },
      expect: forbidden,
    }),
  ),
  {
    name: 'guard: a foreign Origin is refused',
    app: { guard: loopback },
    request: { ...there, headers: { host: 'localhost:8080', origin: 'http://evil.example' } },
    expect: { ...forbidden, headers: { 'access-control-allow-origin': null } },
  },
  ...(
    [
      ['cross-site', 'no-cors', false],
      ['cross-site', 'navigate', true],
      ['same-site', 'no-cors', true],
      ['same-origin', 'cors', true],
      ['none', 'navigate', true],
    ] as const
  ).map(([site, mode, passes]) => ({
    name: `guard: a page may ${passes ? '' : 'not '}load something from here, without an Origin: ${site}, ${mode}`,
    app: { guard: loopback },
    request: { ...there, headers: { host: 'localhost:8080', 'sec-fetch-site': site, 'sec-fetch-mode': mode } },
    expect: passes ? notThere : forbidden,
  })),
  {
    name: 'guard: the Origin "null" is refused',
    app: { guard: loopback },
    request: { ...there, headers: { host: 'localhost:8080', origin: 'null' } },
    expect: forbidden,
  },
  {
    name: 'guard: another port of this machine is another Origin',
    app: { guard: loopback },
    request: { ...there, headers: { host: 'localhost:8080', origin: 'http://localhost:8081' } },
    expect: forbidden,
  },
  {
    name: "guard: the server's own Origin passes",
    app: { guard: loopback },
    request: { ...there, headers: { host: 'localhost:8080', origin: 'http://localhost:8080' } },
    expect: notThere,
  },
  {
    name: 'guard: an allowed Origin passes and gets CORS headers',
    app: { guard: loopback },
    request: { ...there, headers: { host: 'localhost:8080', origin: 'http://localhost:3000' } },
    expect: {
      ...notThere,
      headers: { 'access-control-allow-origin': 'http://localhost:3000', vary: /origin/i },
    },
  },
  {
    name: 'guard: the preflight of an allowed Origin is answered',
    app: { guard: loopback },
    request: {
      ...there,
      method: 'OPTIONS',
      headers: {
        host: 'localhost:8080',
        origin: 'http://localhost:3000',
        'access-control-request-method': 'DELETE',
        'access-control-request-headers': 'authorization, x-custom',
      },
    },
    expect: {
      status: 204,
      headers: {
        'access-control-allow-origin': 'http://localhost:3000',
        'access-control-allow-methods': /DELETE/,
        'access-control-allow-headers': 'authorization, x-custom',
      },
    },
  },
  {
    name: 'no guard: any Host is answered',
    request: { ...there, headers: { host: 'assay.example', origin: 'http://evil.example' } },
    expect: { ...notThere, headers: { 'access-control-allow-origin': null } },
  },
];
