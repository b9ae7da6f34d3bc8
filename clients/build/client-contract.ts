/** Describes how the contract must be written for one client generator, because generators differ. */
export interface Form {
  /** Tags of the operations whose schemas the client needs. */
  tags: readonly ('decision service' | 'decision formats' | 'extractions' | 'model server')[];
  /**
   * Form of enums of strings. `union`: one of the known values, or any other string. `text`: a string whose
   * description lists the known values.
   */
  enums: 'union' | 'text';
  /**
   * Form of unnamed unions, such as "a string or a boolean", and null in optional members. `keep` leaves both
   * as they are. `any` replaces such a union by any value and omits null, for generators that create a class for each
   * union.
   */
  unions: 'keep' | 'any';
  /**
   * Form of the discriminator, the member that distinguishes the variants of a union, inside each variant: kept,
   * kept with a default value, or dropped because the generated union has it.
   */
  tag: 'keep' | 'default' | 'drop';
  /** True if the contract must state that objects may have further members; most generators assume it. */
  saysOpen?: boolean;
}

type Node = { [keyword: string]: unknown };
interface Contract {
  info: Node;
  paths: Record<string, Record<string, Node & { tags: string[] }>>;
  components: { schemas: Record<string, Node>; [kind: string]: unknown };
}

/**
 * Returns the contract in the form for a client. The server may be newer than the client and validates requests itself.
 * The result therefore has no limits and no defaults; every enum is open to further values (docs/interface.md, D-32),
 * and objects may have further members.
 */
export function clientContract(contract: Contract, form: Form): object {
  const operations = Object.entries(contract.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { tags }]) => tags.some((tag) => form.tags.includes(tag as Form['tags'][number])))
      .map(([method, operation]) => ({ path, method, operation: plainOperation(operation) })),
  );
  const schemas = reachable(operations, contract.components.schemas);
  const paths: Record<string, Node> = {};
  for (const { path, method, operation } of operations) paths[path] = { ...paths[path], [method]: operation };
  const open = Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, openSchema(schema, form)]));
  return { openapi: '3.1.0', info: contract.info, paths, components: { schemas: withTags(open, form) } };
}

/**
 * Returns an operation without headers and with a single error response, because handwritten code of the client handles
 * headers and errors.
 */
function plainOperation({ operationId, tags, summary, requestBody, responses }: Node & { tags: string[] }): Node {
  const success = (responses as Record<string, Node>)['200'];
  const error = { description: 'Failed.', content: { 'application/json': { schema: { $ref: ref('ErrorBody') } } } };
  const body = requestBody ? { requestBody: withoutExamples(requestBody) } : {};
  const { headers: _, ...answer } = success ?? {};
  return { operationId, tags, summary, ...body, responses: { 200: withoutExamples(answer), default: error } };
}

function withoutExamples(body: unknown): unknown {
  return JSON.parse(JSON.stringify(body, (key, value) => (key === 'examples' ? undefined : value)));
}

function ref(name: string): string {
  return `#/components/schemas/${name}`;
}

/** Returns the schemas that `from` refers to, directly or indirectly, in the contract's order. */
function reachable(from: unknown, schemas: Record<string, Node>): Record<string, Node> {
  const found = new Set<string>();
  const visit = (node: unknown) => {
    for (const [, name] of JSON.stringify(node).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (found.has(name!)) continue;
      found.add(name!);
      visit(schemas[name!]);
    }
  };
  visit(from);
  return Object.fromEntries(Object.entries(schemas).filter(([name]) => found.has(name)));
}

const LEFT_TO_THE_SERVER = new Set([
  'minLength',
  'maxLength',
  'pattern',
  'minimum',
  'maximum',
  'minItems',
  'maxItems',
  'default',
  'examples',
]);

function openSchema(schema: Node, form: Form): Node {
  const kept = Object.entries(schema).filter(
    ([keyword, value]) => !LEFT_TO_THE_SERVER.has(keyword) && !(keyword === 'additionalProperties' && value === false),
  );
  // The branches of these unions exclude each other, so `oneOf` means the same, and generators handle it better.
  const named = kept.map(([keyword, value]) => [keyword === 'anyOf' ? 'oneOf' : keyword, value] as const);
  const node = Object.fromEntries(named.map(([keyword, value]) => [keyword, openKeyword(keyword, value, form)]));
  if (form.unions === 'any' && isNode(node.properties)) node.properties = withoutNull(node);
  if (form.saysOpen && node.properties) return { ...node, additionalProperties: {} };
  return isOpenList(node) ? openList(node, form) : node;
}

function openKeyword(keyword: string, value: unknown, form: Form): unknown {
  if (keyword === 'properties') {
    return Object.fromEntries(
      Object.entries(value as Node).map(([name, one]) => [name, openInside(one as Node, form)]),
    );
  }
  if (Array.isArray(value)) return value.map((one) => (isNode(one) ? openInside(one, form) : one));
  // `{}` also allows any value, but makes generators create a plain map.
  if (keyword === 'additionalProperties' && value === true) return {};
  return isNode(value) && keyword !== 'discriminator' ? openInside(value, form) : value;
}

/** Converts an unnamed schema as `openSchema` does, but replaces forms that the generator cannot express. */
function openInside(schema: Node, form: Form): Node {
  const node = openSchema(schema, form);
  if (form.unions === 'keep') return node;
  const { description, oneOf, properties } = node;
  const described = description ? { description } : {};
  if (Array.isArray(oneOf) && !isNullable(oneOf)) return described;
  // An object with members such as `true`, which few languages allow as names, becomes a map.
  if (isNode(properties) && 'true' in properties) return { type: 'object', ...described, additionalProperties: {} };
  return node;
}

/** Returns the properties of an object. Optional ones lose null, which means the same as omitting the property. */
function withoutNull({ properties, required = [] }: Node): Node {
  const plain = (one: Node): Node => {
    const [only] = Array.isArray(one.oneOf) ? one.oneOf.filter(({ type }: Node) => type !== 'null') : [];
    if (only) return { ...one, ...only, oneOf: undefined };
    return Array.isArray(one.type) ? { ...one, type: one.type.find((type) => type !== 'null') } : one;
  };
  const members = Object.entries(properties as Record<string, Node>);
  return Object.fromEntries(
    members.map(([name, one]) => [name, (required as string[]).includes(name) || one.discriminator ? one : plain(one)]),
  );
}

/** Tells whether a union consists of null and one other schema. */
function isNullable(union: readonly Node[]): boolean {
  const forms = union.filter(({ type }) => type !== 'null');
  return forms.length === 1 && ('$ref' in forms[0]! || 'type' in forms[0]!);
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Tells whether a schema is an enum of strings that may get further values. An enum of one value is a discriminator,
 * which never does.
 */
function isOpenList(node: Node): node is Node & { enum: string[] } {
  return node.type === 'string' && Array.isArray(node.enum) && node.enum.length > 1;
}

function openList({ enum: known, description, ...rest }: Node & { enum: string[] }, { enums }: Form): Node {
  if (enums === 'union')
    return { ...(description ? { description } : {}), anyOf: [{ ...rest, enum: known }, { type: 'string' }] };
  const words = `Known values: ${known.join(', ')}.`;
  return { ...rest, description: description ? `${description} ${words}` : words };
}

/** Returns the schemas with their discriminators in the form that the generator needs. */
function withTags(schemas: Record<string, Node>, { tag, enums }: Form): Record<string, Node> {
  if (tag === 'keep') return schemas;
  const tags = new Map<string, string>();
  for (const { discriminator } of Object.values(schemas)) {
    if (!isNode(discriminator)) continue;
    for (const target of Object.values(discriminator.mapping as Record<string, string>)) {
      tags.set(target, discriminator.propertyName as string);
    }
  }
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => {
      const member = tags.get(ref(name));
      return [name, member ? withTag(schema, member, { tag, enums }) : schema];
    }),
  );
}

function withTag(schema: Node, member: string, { tag, enums }: Pick<Form, 'tag' | 'enums'>): Node {
  const { [member]: old, ...others } = schema.properties as Record<string, Node>;
  const required = (schema.required as string[]).filter((name) => name !== member);
  const known = (old!.enum as string[])[0];
  const filled = { ...(enums === 'union' ? old : { type: 'string' }), default: known };
  return { ...schema, required, properties: tag === 'drop' ? others : { [member]: filled, ...others } };
}
