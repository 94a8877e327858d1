import { h } from './dom.js';

let fieldCount = 0;

/**
 * Creates form fields for a JSON schema. A property without a field of its own (nested objects, unions) is entered as
 * JSON.
 * @param {object} schema of an object
 * @returns {{ element: HTMLFieldSetElement, read(): object, peek(): object }} `read` throws an error with a sentence
 *   for the person; `peek` returns the values that are valid
 */
export function createSchemaForm(schema) {
  const required = new Set(schema?.required ?? []);
  const fields = Object.entries(schema?.properties ?? {}).map(([name, property]) => ({
    name,
    isRequired: required.has(name),
    ...createField(name, property ?? {}, required.has(name)),
  }));
  const element = h('fieldset.fields', {}, ...fields.map((field) => field.element));
  if (fields.length === 0) element.append(h('p.muted', {}, 'There are no arguments.'));
  return {
    element,
    read() {
      const values = {};
      for (const { name, isRequired, read } of fields) {
        const value = read();
        if (value !== undefined) values[name] = value;
        else if (isRequired) throw new Error(`${name} is required.`);
      }
      return values;
    },
    peek: () =>
      Object.fromEntries(
        fields.map(({ name, read }) => [name, validOf(() => read(name))]).filter(([, value]) => value !== undefined),
      ),
  };
}

/** Returns the value that a function reads; undefined if it is not valid. */
function validOf(read) {
  try {
    return read();
  } catch {
    return undefined;
  }
}

function createField(name, schema, isRequired) {
  fieldCount += 1;
  const id = `field-${fieldCount}`;
  const title = schema.title ?? name;
  const { control, read } = createControl(id, schema, isRequired, title);
  const isGroup = control.tagName === 'FIELDSET';
  if (schema.description) control.setAttribute('aria-describedby', `${id}-about`);
  const label = h('label', { for: id }, title, isRequired ? h('span.muted', {}, ' (required)') : undefined);
  return {
    element: h(
      'div.field',
      {},
      isGroup ? undefined : label,
      control,
      schema.description ? h('p.muted', { id: `${id}-about` }, schema.description) : undefined,
    ),
    read: () => read(name),
  };
}

function createControl(id, schema, isRequired, title) {
  const choices = choicesOf(schema);
  if (choices !== undefined) return createSelect(id, schema, choices, isRequired);
  const itemChoices = schema.type === 'array' ? choicesOf(schema.items ?? {}) : undefined;
  if (itemChoices !== undefined) return createCheckboxes(id, schema, itemChoices, title);
  switch (schema.type) {
    case 'boolean':
      return createSelect(
        id,
        schema,
        [
          [true, 'true'],
          [false, 'false'],
        ],
        isRequired,
      );
    case 'number':
    case 'integer':
      return createNumber(id, schema, isRequired);
    case 'string':
      return createText(id, schema, isRequired);
    default:
      return createJson(id, schema, isRequired);
  }
}

/** Returns the allowed values with their names; undefined if the schema lists none. */
function choicesOf({ enum: values, enumNames, oneOf, anyOf }) {
  if (values !== undefined) return values.map((value, index) => [value, String(enumNames?.[index] ?? value)]);
  const named = oneOf ?? anyOf;
  if (named?.every((one) => one.const !== undefined))
    return named.map((one) => [one.const, String(one.title ?? one.const)]);
  return undefined;
}

function createSelect(id, schema, choices, isRequired) {
  const control = h(
    'select',
    { id, required: isRequired },
    h('option', { value: '' }, isRequired ? 'Choose …' : 'Not set'),
    ...choices.map(([value, text], index) =>
      h('option', { value: String(index), selected: value === schema.default }, text),
    ),
  );
  return { control, read: () => (control.value === '' ? undefined : choices[Number(control.value)][0]) };
}

function createCheckboxes(id, schema, choices, title) {
  const chosen = new Set(schema.default ?? []);
  const boxes = choices.map(([value, text], index) => {
    const box = h('input', { type: 'checkbox', id: `${id}-${index}`, checked: chosen.has(value) });
    return { value, box, element: h('label.choice', { for: `${id}-${index}` }, box, text) };
  });
  const control = h('fieldset', { id }, h('legend', {}, title), ...boxes.map(({ element }) => element));
  return { control, read: () => boxes.filter(({ box }) => box.checked).map(({ value }) => value) };
}

function createNumber(id, schema, isRequired) {
  const control = h('input', {
    id,
    type: 'number',
    required: isRequired,
    step: schema.type === 'integer' ? '1' : 'any',
    min: schema.minimum,
    max: schema.maximum,
    value: schema.default,
  });
  return { control, read: () => (control.value === '' ? undefined : control.valueAsNumber) };
}

const inputTypes = { email: 'email', uri: 'url', date: 'date' };

function createText(id, schema, isRequired) {
  const control = h('input', {
    id,
    type: inputTypes[schema.format] ?? 'text',
    required: isRequired,
    minlength: schema.minLength,
    maxlength: schema.maxLength,
    value: schema.default,
    autocomplete: 'off',
  });
  return { control, read: () => (control.value === '' && !isRequired ? undefined : control.value) };
}

function createJson(id, schema, isRequired) {
  const control = h('textarea', { id, rows: '4', spellcheck: 'false', required: isRequired, placeholder: 'JSON' });
  if (schema.default !== undefined) control.value = JSON.stringify(schema.default, undefined, 2);
  return {
    control,
    read(name) {
      if (control.value.trim() === '') return undefined;
      try {
        return JSON.parse(control.value);
      } catch (error) {
        throw new Error(`${name} is not valid JSON: ${error.message}`);
      }
    },
  };
}
