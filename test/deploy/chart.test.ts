import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { root } from '../support/gateway.ts';

/** The files of the Helm chart that can be checked without helm. `node test/run.mjs chart` renders the chart. */

const read = (name: string): string => readFileSync(`${root}deploy/helm/mcp-gangway/${name}`, 'utf8');
const values = parse(read('values.yaml'));
const schema = JSON.parse(read('values.schema.json'));

it('has defaults that its schema allows', () => {
  const ajv = new Ajv({ strict: true, strictTypes: false, allErrors: true });
  const isValid = ajv.compile(schema);
  expect(isValid(values), JSON.stringify(isValid.errors)).toBe(true);
  expect(isValid({ ...values, replicas: 2 })).toBe(false);
});

it('has a default and a description for each value of the schema, and no others', () => {
  interface Described {
    readonly description?: string;
    readonly properties?: Record<string, Described>;
  }
  const compare = (described: Described, given: unknown, path: string): void => {
    const { global: _ofParents, ...known } = described.properties ?? {};
    expect(Object.keys(given as object).toSorted(), path).toEqual(Object.keys(known).toSorted());
    for (const [name, value] of Object.entries(known)) {
      expect(value.description, `${path}${name}`).toMatch(/\.$/);
      if (value.properties !== undefined) compare(value, Reflect.get(given as object, name), `${path}${name}.`);
    }
  };
  compare(schema, values, '');
});

it('has the version of this checkout', () => {
  const { version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));
  expect(parse(read('Chart.yaml'))).toMatchObject({ version, appVersion: version });
});
