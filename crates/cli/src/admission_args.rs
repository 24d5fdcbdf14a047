//! Who gets to ask: what `serve` is told about proxies in front of it.

use crate::Failure;
use clap::Args;
use holdfast_server::{Config, FileConfig, Secret, TrustedProxies};
use std::path::PathBuf;

#[derive(Args)]
#[command(next_help_heading = "Sales")]
pub(crate) struct AdmissionArgs {
    /// Proxies whose X-Forwarded-For tells where a request comes from: 10.0.0.0/8,127.0.0.1 [default: none].
    #[arg(long, env = "HOLDFAST_TRUSTED_PROXIES", value_name = "NETWORKS")]
    trusted_proxies: Option<String>,
    /// A Redis that keeps one budget of tokens for all nodes: redis://… [default: the engine's, if it is one].
    #[arg(long, env = "HOLDFAST_COORDINATION", value_name = "URL", hide_env_values = true)]
    coordination: Option<String>,
    /// How many nodes there are: each has its share of that budget while its Redis does not answer [default: 1].
    #[arg(long, env = "HOLDFAST_NODES", value_name = "COUNT")]
    nodes: Option<u32>,
    /// Where other nodes find this one, for waiting rooms: http://10.0.0.5:8080 [default: the address it serves on].
    #[arg(long, env = "HOLDFAST_ADVERTISE", value_name = "URL")]
    advertise: Option<String>,
    /// Where the waiting room may send shoppers: https://shop.example,… [default: paths of its own host].
    #[arg(long, env = "HOLDFAST_RETURN_ORIGINS", value_name = "ORIGINS")]
    return_origins: Option<String>,
    /// A style sheet of your own for the page of the waiting room.
    #[arg(long, env = "HOLDFAST_WAITING_ROOM_CSS", value_name = "FILE")]
    waiting_room_css: Option<PathBuf>,
    /// Secrets with which the shop signs who joins a waiting room: 32 bytes or more each, separated by commas.
    #[arg(long, env = "HOLDFAST_ENQUEUE_SECRETS", value_name = "SECRETS", hide_env_values = true)]
    enqueue_secrets: Option<String>,
}

impl AdmissionArgs {
    /// What is told here, else what the file says.
    pub(crate) fn choose(&self, file: &FileConfig, engine: Option<&str>, config: &mut Config) -> Result<(), Failure> {
        let proxies = self.trusted_proxies.clone().unwrap_or_else(|| file.trusted_proxies.join(","));
        config.trusted_proxies = TrustedProxies::parse(&proxies)?;
        config.coordination = self.coordination.clone().map(Secret).or_else(|| file.coordination.clone());
        let is_redis = |url: &&str| url.starts_with("redis") && url.contains("://");
        if let (None, Some(url)) = (&config.coordination, engine.filter(is_redis)) {
            config.coordination = Some(Secret(url.to_owned()));
        }
        config.advertise = self.advertise.clone().or_else(|| file.advertise.clone());
        config.nodes = self.nodes.or(file.nodes).unwrap_or(1).max(1);
        config.return_origins = listed(self.return_origins.as_deref()).unwrap_or_else(|| file.return_origins.clone());
        let secrets = listed(self.enqueue_secrets.as_deref());
        let secrets = secrets.map(|all| all.into_iter().map(Secret).collect());
        config.enqueue_secrets = secrets.unwrap_or_else(|| file.enqueue_secrets.clone());
        if let Some(file) = self.waiting_room_css.as_ref().or(file.waiting_room_css.as_ref()) {
            let css = std::fs::read_to_string(file)
                .map_err(|e| format!("cannot read the style sheet {}: {e}", file.display()))?;
            config.waiting_room_css = Some(css);
        }
        Ok(())
    }
}

fn listed(text: Option<&str>) -> Option<Vec<String>> {
    let parts = text?.split(',').map(str::trim).filter(|part| !part.is_empty());
    Some(parts.map(str::to_owned).collect())
}
