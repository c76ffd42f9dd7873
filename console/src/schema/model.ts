/** JSON Schemas of tools, as far as a form can show them. What it cannot show is edited as JSON. */

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

export interface FieldModel {
  kind: 'object' | 'array' | 'string' | 'number' | 'integer' | 'boolean' | 'enum' | 'json';
  title: string | undefined;
  description: string | undefined;
  /** The values of `enum` and `const`. */
  values: Json[];
  properties: [string, FieldModel][];
  required: Set<string>;
  items: FieldModel | undefined;
  minimum: number | undefined;
  maximum: number | undefined;
  minLength: number | undefined;
  maxLength: number | undefined;
  pattern: string | undefined;
  format: string | undefined;
  fallback: Json | undefined;
}

/** Nested objects deeper than this are edited as JSON. */
const MAX_DEPTH = 6;

/** Reads a schema, whatever it is. `root` resolves its references. */
export function modelOf(schema: unknown, root: unknown = schema, depth = 0): FieldModel {
  const resolved = resolve(schema, root);
  const model: FieldModel = {
    kind: 'json',
    title: text(resolved['title']),
    description: text(resolved['description']),
    values: [],
    properties: [],
    required: new Set(),
    items: undefined,
    minimum: numberOf(resolved['minimum']),
    maximum: numberOf(resolved['maximum']),
    minLength: numberOf(resolved['minLength']),
    maxLength: numberOf(resolved['maxLength']),
    pattern: text(resolved['pattern']),
    format: text(resolved['format']),
    fallback: resolved['default'] as Json | undefined,
  };
  if (depth > MAX_DEPTH) {
    return model;
  }
  const values = 'const' in resolved ? [resolved['const']] : resolved['enum'];
  if (Array.isArray(values)) {
    return { ...model, kind: 'enum', values: values as Json[] };
  }
  const type = typeOf(resolved);
  switch (type) {
    case 'object':
      return objectModel(model, resolved, root, depth);
    case 'array':
      return { ...model, kind: 'array', items: modelOf(resolved['items'] ?? {}, root, depth + 1) };
    case 'string':
    case 'number':
    case 'integer':
    case 'boolean':
      return { ...model, kind: type };
    default:
      return model;
  }
}

function objectModel(model: FieldModel, schema: JsonObject, root: unknown, depth: number): FieldModel {
  const properties = isObject(schema['properties']) ? schema['properties'] : {};
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  const entries = Object.entries(properties);
  // An object of any members is JSON, unless it is the object of all arguments.
  if (entries.length === 0 && depth > 0) {
    return model;
  }
  return {
    ...model,
    kind: 'object',
    properties: entries.map(([name, property]) => [name, modelOf(property, root, depth + 1)]),
    required: new Set(required.filter((name): name is string => typeof name === 'string')),
  };
}

/** Returns the one type of a schema. A type that may also be null is that type. */
function typeOf(schema: JsonObject): string | undefined {
  const types = Array.isArray(schema['type']) ? schema['type'].filter((type) => type !== 'null') : [schema['type']];
  if (types.length === 1 && typeof types[0] === 'string') {
    return types[0];
  }
  return types[0] === undefined && isObject(schema['properties']) ? 'object' : undefined;
}

/** Follows references within the document, and alternatives of which all but one are null. */
function resolve(schema: unknown, root: unknown): JsonObject {
  let current = schema;
  for (let step = 0; step < 10; step += 1) {
    if (!isObject(current)) {
      return {};
    }
    const reference = current['$ref'];
    const alternatives = current['anyOf'] ?? current['oneOf'];
    if (typeof reference === 'string' && reference.startsWith('#')) {
      const { $ref: _reference, ...rest } = current;
      const target = at(root, reference.slice(1));
      current = isObject(target) ? { ...target, ...rest } : {};
    } else if (Array.isArray(alternatives)) {
      const others = alternatives.filter((one) => !(isObject(one) && one['type'] === 'null'));
      if (others.length !== 1 || !isObject(others[0])) {
        return current;
      }
      const { anyOf: _any, oneOf: _one, ...rest } = current;
      current = { ...others[0], ...rest };
    } else {
      return current;
    }
  }
  return {};
}

/** Returns the value at a JSON Pointer (RFC 6901). */
function at(root: unknown, pointer: string): unknown {
  let current = root;
  for (const part of pointer.split('/').slice(1)) {
    const name = decodeURIComponent(part).replace(/~1/g, '/').replace(/~0/g, '~');
    if (!isObject(current) || !Object.hasOwn(current, name)) {
      return undefined;
    }
    current = current[name];
  }
  return current;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

/** Returns the arguments that a form begins with: required objects, and defaults of required members. */
export function initialValue(model: FieldModel): Json | undefined {
  if (model.fallback !== undefined) {
    return model.fallback;
  }
  if (model.kind !== 'object') {
    return undefined;
  }
  const value: JsonObject = {};
  for (const [name, property] of model.properties) {
    const initial = model.required.has(name) ? initialValue(property) : undefined;
    if (initial !== undefined) {
      value[name] = initial;
    }
  }
  return value;
}
