//! Metrics for Prometheus.
