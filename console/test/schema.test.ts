/** Forms from the schemas of tools. */
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { initialValue, type Json, modelOf } from '../src/schema/model.ts';
import { validate } from '../src/schema/validate.ts';

const SCHEMA = {
  type: 'object',
  properties: {
    cabin: { enum: ['economy', 'first'] },
    seats: { type: 'integer', minimum: 1 },
    price: { anyOf: [{ type: 'number' }, { type: 'null' }] },
    passenger: { $ref: '#/$defs/passenger' },
    tags: { type: 'array', items: { type: 'string', maxLength: 3 } },
    any: {},
  },
  required: ['cabin', 'passenger'],
  $defs: { passenger: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } },
};

function check(value: Json, expected: Record<string, string>): void {
  assert.deepEqual(Object.fromEntries(validate(modelOf(SCHEMA), value)), expected);
}

test('kinds of fields', () => {
  const kinds = modelOf(SCHEMA).properties.map(([name, field]) => `${name} ${field.kind}`);
  assert.deepEqual(kinds, ['cabin enum', 'seats integer', 'price number', 'passenger object', 'tags array', 'any json']);
});

test('problems are named by path', () => {
  check({ cabin: 'first', passenger: { name: 'Ada' } }, {});
  check({}, { '/cabin': 'required', '/passenger': 'required' });
  check({ cabin: 'third', passenger: {} }, { '/cabin': 'not one of the values', '/passenger/name': 'required' });
  check({ cabin: 'first', passenger: { name: 'Ada' }, seats: 0 }, { '/seats': 'at least 1' });
  check({ cabin: 'first', passenger: { name: 'Ada' }, seats: 1.5 }, { '/seats': 'expected a whole number' });
  check({ cabin: 'first', passenger: { name: 'Ada' }, seats: 'x' }, { '/seats': 'expected a number' });
  check({ cabin: 'first', passenger: { name: 'Ada' }, tags: ['abc', 'abcd'] }, { '/tags/1': 'at most 3 characters' });
});

test('form begins with required objects and defaults', () => {
  assert.deepEqual(initialValue(modelOf(SCHEMA)), { passenger: {} });
  const withDefault = { type: 'object', properties: { a: { type: 'integer', default: 3 } }, required: ['a'] };
  assert.deepEqual(initialValue(modelOf(withDefault)), { a: 3 });
});

test('hostile schemas are edited as JSON', () => {
  const loop = { type: 'object', properties: { loop: { $ref: '#/properties/loop' }, deep: { $ref: '#' } } };
  const fields = modelOf(loop).properties.map(([, field]) => field.kind);
  assert.deepEqual(fields, ['json', 'object']);
  for (const odd of [null, 7, 'x', [], { type: 5 }, { properties: [] }, { $ref: 1 }, { anyOf: 7 }, { enum: 'x' }]) {
    assert.ok(['json', 'object'].includes(modelOf(odd).kind), JSON.stringify(odd));
  }
});
