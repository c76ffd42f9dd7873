/** A form for the arguments of a tool, from its JSON Schema. */
import { useState } from 'preact/hooks';
import { Field } from '../components/controls';
import { visible } from '../format';
import { type FieldModel, isObject, type Json, type JsonObject } from './model.ts';
import type { Problems } from './validate.ts';

interface FieldProps {
  model: FieldModel;
  value: Json | undefined;
  /** Path of the value, which is also the id of its field. */
  path: string;
  problems: Problems;
  onChange: (value: Json | undefined) => void;
}

/** The members of the object of all arguments. */
export function SchemaForm({ model, value, path, problems, onChange }: FieldProps) {
  const members = isObject(value) ? value : {};
  if (model.properties.length === 0) {
    return <p class="muted">The tool takes no arguments that its schema names.</p>;
  }
  return (
    <>
      {model.properties.map(([name, property]) => (
        <Member
          key={name}
          name={name}
          required={model.required.has(name)}
          model={property}
          value={Object.hasOwn(members, name) ? members[name] : undefined}
          path={`${path}/${name}`}
          problems={problems}
          onChange={(member) => onChange(withMember(members, name, member))}
        />
      ))}
    </>
  );
}

function withMember(members: JsonObject, name: string, value: Json | undefined): JsonObject {
  const entries = Object.entries(members).filter(([other]) => other !== name);
  // `fromEntries` defines members also by the name `__proto__`.
  return Object.fromEntries(value === undefined ? entries : [...entries, [name, value]]);
}

function Member({ name, required, ...field }: FieldProps & { name: string; required: boolean }) {
  const { model, path, problems, value, onChange } = field;
  const label = (
    <>
      <bdi>{visible(name)}</bdi>
      {required && <abbr title="required">*</abbr>} <span class="muted">{typeName(model)}</span>
    </>
  );
  if (model.kind === 'object') {
    return (
      <fieldset>
        <legend>{label}</legend>
        {model.description !== undefined && <div class="hint">{visible(model.description)}</div>}
        <SchemaForm {...field} />
        {!required && value !== undefined && (
          <button type="button" class="link" onClick={() => onChange(undefined)}>
            Leave out
          </button>
        )}
      </fieldset>
    );
  }
  if (model.kind === 'array' && model.items !== undefined && isScalar(model.items)) {
    return <List label={label} items={model.items} {...field} />;
  }
  const hint = model.description === undefined ? undefined : visible(model.description);
  return (
    <Field id={path} label={label} hint={hint} problem={problems.get(path)}>
      <Input {...field} />
    </Field>
  );
}

function typeName(model: FieldModel): string {
  switch (model.kind) {
    case 'enum':
      return '';
    case 'array':
      return 'list';
    case 'json':
      return 'JSON';
    default:
      return model.format ?? model.kind;
  }
}

function isScalar(model: FieldModel): boolean {
  return model.kind !== 'object' && model.kind !== 'array' && model.kind !== 'json';
}

function List({ label, items, ...field }: FieldProps & { label: preact.ComponentChild; items: FieldModel }) {
  const { path, problems, value, onChange, model } = field;
  const list = Array.isArray(value) ? value : [];
  const replace = (index: number, item: Json | undefined) =>
    onChange(list.map((other, position) => (position === index ? (item ?? '') : other)));
  const remove = (index: number) => {
    const rest = list.filter((_item, position) => position !== index);
    onChange(rest.length === 0 ? undefined : rest);
  };
  const first = items.kind === 'enum' ? (items.values[0] ?? null) : items.kind === 'boolean' ? false : '';
  return (
    <fieldset>
      <legend>{label}</legend>
      {model.description !== undefined && <div class="hint">{visible(model.description)}</div>}
      {list.map((item, index) => (
        <div class="item" key={index}>
          <Input
            model={items}
            value={item}
            path={`${path}/${index}`}
            problems={problems}
            label={`Item ${index + 1}`}
            onChange={(changed) => replace(index, changed)}
          />
          <button type="button" aria-label={`Remove item ${index + 1}`} onClick={() => remove(index)}>
            ×
          </button>
          {problems.get(`${path}/${index}`) !== undefined && (
            <div class="problem">{problems.get(`${path}/${index}`)}</div>
          )}
        </div>
      ))}
      {problems.get(path) !== undefined && <div class="problem">{problems.get(path)}</div>}
      <button type="button" onClick={() => onChange([...list, first])}>
        Add item
      </button>
    </fieldset>
  );
}

/** The input of one value. */
function Input({ label, ...field }: FieldProps & { label?: string }) {
  const { model, value, path, problems, onChange } = field;
  const common = {
    id: path,
    'aria-label': label,
    'aria-invalid': problems.has(path),
    'aria-describedby': problems.has(path) ? `${path}-problem` : undefined,
  };
  switch (model.kind) {
    case 'enum': {
      const current = model.values.findIndex((one) => JSON.stringify(one) === JSON.stringify(value));
      const choose = (index: number) => onChange(index < 0 ? undefined : model.values[index]);
      return (
        <select {...common} value={String(current)} onChange={(event) => choose(Number(event.currentTarget.value))}>
          <option value="-1">–</option>
          {model.values.map((one, index) => (
            <option key={index} value={String(index)}>
              {visible(typeof one === 'string' ? one : JSON.stringify(one))}
            </option>
          ))}
        </select>
      );
    }
    case 'boolean': {
      const choose = (text: string) => onChange(text === '' ? undefined : text === 'true');
      return (
        <select {...common} value={value === undefined ? '' : String(value)} onChange={(event) => choose(event.currentTarget.value)}>
          <option value="">–</option>
          <option value="true">true</option>
          <option value="false">false</option>
        </select>
      );
    }
    case 'number':
    case 'integer':
      return (
        <input
          {...common}
          inputMode="decimal"
          value={value === undefined ? '' : String(value)}
          onInput={(event) => onChange(numberFrom(event.currentTarget.value))}
        />
      );
    case 'string':
      return (
        <textarea
          {...common}
          rows={1}
          value={typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)}
          onInput={(event) => onChange(event.currentTarget.value === '' ? undefined : event.currentTarget.value)}
        />
      );
    default:
      return <JsonInput {...field} />;
  }
}

/** A text that is no number stays a text, which the validation reports. */
function numberFrom(text: string): Json | undefined {
  const trimmed = text.trim();
  if (trimmed === '') {
    return undefined;
  }
  const value = Number(trimmed);
  // `1.` and `1e` are on their way to a number.
  return Number.isFinite(value) && String(value) === trimmed ? value : trimmed.match(/^-?\d+(\.\d+)?$/) ? value : trimmed;
}

/** A value as JSON. While the text is no JSON, the value stays the last one. */
function JsonInput({ value, path, onChange }: FieldProps) {
  const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value));
  const [problem, setProblem] = useState<string>();
  const change = (input: string) => {
    setText(input);
    try {
      onChange(input.trim() === '' ? undefined : (JSON.parse(input) as Json));
      setProblem(undefined);
    } catch {
      setProblem('not valid JSON');
    }
  };
  return (
    <>
      <textarea
        id={path}
        rows={2}
        class="code"
        value={text}
        aria-invalid={problem !== undefined}
        onInput={(event) => change(event.currentTarget.value)}
      />
      {problem !== undefined && <div class="problem">{problem}</div>}
    </>
  );
}
