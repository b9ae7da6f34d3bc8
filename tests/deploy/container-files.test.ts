import { existsSync, globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { readDocuments } from '../../adapters/playground/documents.ts';

/*
 * What a machine without Docker can check of the Dockerfile, compose.yaml and nginx.conf. docs/deploy.md says how they
 * were run for real.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): Promise<string> => readFile(join(ROOT, path), 'utf8');

/** Returns the instructions of a Dockerfile: comments left out, continued lines joined. */
function instructions(text: string): { name: string; value: string }[] {
  const joined = text.replace(/^#.*\n/gm, '').replace(/\\\n/g, ' ');
  return joined.split('\n').flatMap((line) => {
    const [, name, value] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    return name === undefined || value === undefined ? [] : [{ name, value }];
  });
}

describe('the Dockerfile', async () => {
  const all = instructions(await read('Dockerfile'));
  const last = all.slice(all.findLastIndex(({ name }) => name === 'FROM'));
  const copied = all
    .filter(({ name, value }) => name === 'COPY' && !value.startsWith('--from'))
    .flatMap(({ value }) => value.split(/\s+/).slice(0, -1));

  test('copies what exists, and .dockerignore lets it through', async () => {
    const ignore = (await read('.dockerignore')).split('\n');
    expect(copied.length).toBeGreaterThan(10);
    for (const path of copied) {
      expect(globSync(path, { cwd: ROOT }), path).not.toEqual([]);
      expect(ignore, path).toContain(`!${path}`);
    }
  });

  test('copies all that the build compiles', async () => {
    const { include } = JSON.parse(await read('tsconfig.build.json'));
    for (const pattern of include as string[]) expect(copied).toContain(pattern.split('/')[0]);
  });

  test('copies all documents that the pages serve', async () => {
    const { documents } = await readDocuments(ROOT);
    for (const { path } of documents) {
      expect(
        copied.some((from) => path === from || path.startsWith(`${from}/`)),
        path,
      ).toBe(true);
    }
  });

  test('takes from the build what the package has', async () => {
    const { files } = JSON.parse(await read('package.json'));
    const taken = last.filter(({ name }) => name === 'COPY').map(({ value }) => value);
    // The script of an install has run in the build.
    for (const path of (files as string[]).filter((file) => !/^(!|release\/)/.test(file))) {
      expect(taken.some((value) => value.includes(`/assay/${path}`))).toBe(true);
    }
  });

  test('has one base image, which an argument can pin by its digest', () => {
    const from = all.filter(({ name }) => name === 'FROM').map(({ value }) => value.split(' ')[0]);
    for (const image of from) expect(image).toMatch(/^\$\{NODE_IMAGE\}$/);
    expect(all[0]).toMatchObject({ name: 'ARG', value: expect.stringMatching(/^NODE_IMAGE=/) });
  });

  test('runs the server as a user who is not root, with volumes and a health check', async () => {
    const values = (wanted: string) => last.filter(({ name }) => name === wanted).map(({ value }) => value);
    expect(values('USER')).toEqual(['1000:1000']);
    expect(values('HEALTHCHECK')[0]).toContain('/health/ready`');
    const volumes: string[] = JSON.parse(values('VOLUME')[0]!);
    expect(values('ENV')[0]).toContain(`ASSAY_HOME=${volumes[0]} HF_HOME=${volumes[1]}`);
    const { bin } = JSON.parse(await read('package.json'));
    expect(values('RUN')[0]).toContain(`/opt/assay/${bin.assay}`);
    expect(JSON.parse(values('ENTRYPOINT')[0]!)).toEqual(['assay']);
  });
});

interface Service {
  read_only?: boolean;
  cap_drop?: string[];
  security_opt?: string[];
  mem_limit?: string;
  volumes?: string[];
  ports?: string[];
  networks: string[] | Record<string, { ipv4_address: string }>;
  secrets?: string[];
}

describe('compose.yaml', async () => {
  const compose = parse(await read('compose.yaml'), { merge: true });
  const services: Record<string, Service> = compose.services;
  const boxes = Object.entries(services).filter(([name]) => name.startsWith('box-'));

  test('has two boxes that only nginx reaches, each with volumes of its own', () => {
    expect(boxes.map(([name]) => name)).toEqual(['box-1', 'box-2']);
    const volumes = boxes.flatMap(([, { volumes = [] }]) => volumes);
    expect(new Set(volumes).size).toBe(4);
    for (const volume of volumes) expect(compose.volumes).toHaveProperty(volume.split(':')[0]!);
    for (const [, box] of boxes) {
      expect(box).toMatchObject({ secrets: ['assay_api_key'], mem_limit: expect.any(String) });
      expect(box.networks).toEqual({ boxes: { ipv4_address: expect.stringMatching(/^172\.30\.73\.\d+$/) } });
      expect(box.ports).toBeUndefined();
    }
    expect(services.nginx).toMatchObject({ ports: ['127.0.0.1:8080:8080'], networks: ['boxes', 'outside'] });
  });

  test.each(Object.entries(services))('%s has a root that cannot be written, and no capabilities', (_, service) => {
    expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] });
  });

  test('mounts files that exist', () => {
    for (const volume of services.nginx!.volumes!) {
      const [from = ''] = volume.split(':');
      expect(existsSync(join(ROOT, from)), from).toBe(true);
    }
  });

  test('its boxes are those of nginx.conf, whose streams are not buffered', async () => {
    const nginx = await read('examples/deploy/nginx.conf');
    for (const [name] of boxes) {
      expect(nginx).toContain(`server ${name}:8080 max_fails`);
      expect(nginx).toContain(`location /boxes/${name}/ { proxy_pass http://${name}/; }`);
    }
    expect(nginx).toMatch(/^ {2}proxy_buffering off;$/m);
    // A box that stops has no address for a while, and one that loads its model answers decisions with 500, at once.
    expect(nginx).toMatch(/^ {2}proxy_next_upstream error timeout http_429 http_500 http_503 non_idempotent;$/m);
    expect(nginx).toMatch(/^ {2}proxy_set_header Host \$http_host;$/m);
  });
});
