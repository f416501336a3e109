# Fits of R's mgcv that lib/beyond/evaluation/gamm.py is compared with. R is no part of the
# environment. On Debian 12 (R 4.2.2, mgcv 1.8-41):
#
#   apt-get install r-base-core r-cran-mgcv
#   Rscript gamm_reference.R gamm_small.csv > gamm_small_mgcv.json     (seconds)
#   Rscript gamm_reference.R gamm_t1.csv                               (ten seconds)
#
# gamm_t1_mgcv.json is put together from such fits, and from slower ones of the full
# model: gam(full, data = answers, method = "REML") and gam(full, data = answers).
suppressMessages(library(mgcv))

# mgcv computes p of a sum of chi-squared variables to 2e-5. Here, to 1e-10.
exact <- mgcv:::psum.chisq
formals(exact)$tol <- 1e-10
formals(exact)$nlim <- 1e7
assignInNamespace("psum.chisq", exact, "mgcv")

answers <- read.csv(commandArgs(TRUE)[1])
answers$u <- factor(answers$u)
k <- min(10, length(unique(answers$x)))
formulas <- list(
  full = y ~ s(x, k = k) + s(u, bs = "re") + s(u, x, bs = "re"),
  no_slopes = y ~ s(x, k = k) + s(u, bs = "re"),
  no_intercepts = y ~ s(x, k = k) + s(u, x, bs = "re"),
  curve_alone = y ~ s(x, k = k)
)
term_names <- c("s(x)" = "smooth", "s(u)" = "intercepts", "s(u,x)" = "slopes")

json <- function(value) {
  if (is.list(value) || !is.null(names(value))) {
    inside <- sapply(names(value), function(n) sprintf('"%s": %s', n, json(value[[n]])))
    return(paste0("{", paste(inside, collapse = ",\n "), "}"))
  }
  inside <- paste(sprintf("%.9g", value), collapse = ", ")
  if (length(value) == 1) inside else paste0("[", inside, "]")
}

fit <- function(formula) {
  model <- bam(formula, data = answers, method = "fREML")
  table <- summary(model)
  terms <- term_names[rownames(table$s.table)]
  column <- function(i) setNames(table$s.table[, i], terms)
  at <- seq(min(answers$x), max(answers$x))
  new <- data.frame(x = at, u = answers$u[1])
  curve <- predict(model, new, type = "terms", se.fit = TRUE)
  list(
    intercept = unname(table$p.table[1, 1]), se = unname(table$p.table[1, 2]),
    sigma2 = model$sig2, residual_df = model$df.residual,
    aic = model$aic, aic_corrected = AIC(model),
    edf = column(1), ref_df = column(2), F = column(3), p = column(4),
    curve = unname(curve$fit[, 1]), curve_se = unname(curve$se.fit[, 1])
  )
}

cat(json(lapply(formulas, fit)), "\n")
