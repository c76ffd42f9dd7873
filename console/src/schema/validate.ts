/**
 * Validation while a form is filled in. The gateway validates arguments against the whole schema; this finds what a person
 * gets wrong first, next to the field.
 */
import { type FieldModel, isObject, type Json } from './model.ts';

/** Problems by the path of the value: `/address/city`. */
export type Problems = Map<string, string>;

export function validate(model: FieldModel, value: Json | undefined): Problems {
  const problems: Problems = new Map();
  check(model, value, '', problems);
  return problems;
}

function check(model: FieldModel, value: Json | undefined, path: string, problems: Problems): void {
  if (value === undefined) {
    return;
  }
  const problem = problemOf(model, value);
  if (problem !== undefined) {
    problems.set(path, problem);
    return;
  }
  if (model.kind === 'object' && isObject(value)) {
    for (const [name, property] of model.properties) {
      const member = Object.hasOwn(value, name) ? value[name] : undefined;
      if (member === undefined && model.required.has(name)) {
        problems.set(`${path}/${name}`, 'required');
      }
      check(property, member, `${path}/${name}`, problems);
    }
  }
  if (model.kind === 'array' && Array.isArray(value) && model.items !== undefined) {
    const { items } = model;
    value.forEach((item, index) => check(items, item, `${path}/${index}`, problems));
  }
}

function problemOf(model: FieldModel, value: Json): string | undefined {
  switch (model.kind) {
    case 'object':
      return isObject(value) ? undefined : 'expected an object';
    case 'array':
      return Array.isArray(value) ? undefined : 'expected a list';
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'expected true or false';
    case 'string':
      return typeof value === 'string' ? stringProblem(model, value) : 'expected a text';
    case 'number':
    case 'integer':
      return typeof value === 'number' ? numberProblem(model, value) : 'expected a number';
    case 'enum':
      return model.values.some((one) => JSON.stringify(one) === JSON.stringify(value))
        ? undefined
        : 'not one of the values';
    case 'json':
      return undefined;
  }
}

function stringProblem(model: FieldModel, value: string): string | undefined {
  const { length } = [...value];
  if (model.minLength !== undefined && length < model.minLength) {
    return `at least ${model.minLength} characters`;
  }
  if (model.maxLength !== undefined && length > model.maxLength) {
    return `at most ${model.maxLength} characters`;
  }
  return undefined;
}

function numberProblem(model: FieldModel, value: number): string | undefined {
  if (!Number.isFinite(value)) {
    return 'expected a number';
  }
  if (model.kind === 'integer' && !Number.isInteger(value)) {
    return 'expected a whole number';
  }
  if (model.minimum !== undefined && value < model.minimum) {
    return `at least ${model.minimum}`;
  }
  if (model.maximum !== undefined && value > model.maximum) {
    return `at most ${model.maximum}`;
  }
  return undefined;
}
