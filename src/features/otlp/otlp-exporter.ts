import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import { OTLPExporterBase } from '@opentelemetry/otlp-exporter-base';
import { convertLegacyHttpOptions, createOtlpHttpExportDelegate } from '@opentelemetry/otlp-exporter-base/node-http';
import type { IExporterMetricsHelper, ISerializer } from '@opentelemetry/otlp-transformer';
import type { ExportCounts } from './export-counts.ts';
import type { Signal } from './otlp-settings.ts';

/** How one signal is written. */
export interface SignalForm<Items, Response> {
  readonly signal: Signal;
  readonly isJson: boolean;
  readonly json: ISerializer<Items, Response>;
  readonly protobuf: ISerializer<Items, Response>;
  readonly helper: IExporterMetricsHelper<Items>;
}

/**
 * Exports one signal over HTTP, and counts what becomes of it. The endpoint, headers, certificates, compression and time
 * limit are read from the variables of OpenTelemetry. The package repeats an export that may succeed later.
 */
export class OtlpExporter<Items, Response> extends OTLPExporterBase<Items> {
  readonly #form: SignalForm<Items, Response>;
  readonly #counts: ExportCounts;
  readonly #onSettled: (items: number) => void;

  /** @param onSettled called with the number of items whose export has ended */
  constructor(form: SignalForm<Items, Response>, counts: ExportCounts, onSettled: (items: number) => void) {
    const { signal, isJson, json, protobuf, helper } = form;
    const type = isJson ? 'application/json' : 'application/x-protobuf';
    const options = convertLegacyHttpOptions({}, signal.toUpperCase(), `v1/${signal}`, { 'Content-Type': type });
    super(createOtlpHttpExportDelegate(options, isJson ? json : protobuf, `otlp_http_${signal}`, helper, undefined));
    this.#form = form;
    this.#counts = counts;
    this.#onSettled = onSettled;
  }

  override export(items: Items, report: (result: ExportResult) => void): void {
    const { signal, helper } = this.#form;
    const count = helper.countItems(items);
    super.export(items, (result) => {
      if (result.code === ExportResultCode.SUCCESS) this.#counts.sent(signal, count);
      else this.#counts.failed(signal, count, result.error);
      this.#onSettled(count);
      // The failure is reported. The SDK would report it again, to nobody.
      report({ code: ExportResultCode.SUCCESS });
    });
  }
}
